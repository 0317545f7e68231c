//! What `lancet top` shows, and which of it is selected.

use lancet::Svma;
use lancet::collect::Recording;
use lancet::profile::{Home, HotFunction, Profile, Programs};
use lancet::program::LoopId;
use lancet::report::disasm;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Row, Table, TableState};

/// How deep the user has gone.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Functions,
    Loops(Home),
    /// Of a loop, or of the whole function.
    Instructions(Home, Option<LoopId>),
}

pub struct View {
    subject: String,
    headline: String,
    level: Level,
    /// What is selected on each level above.
    above: Vec<usize>,
    state: TableState,
    rows: usize,
}

impl View {
    pub fn new(subject: String) -> View {
        let headline = "waiting for samples".to_owned();
        View {
            subject,
            headline,
            level: Level::Functions,
            above: Vec::new(),
            state: TableState::new().with_selected(0),
            rows: 0,
        }
    }

    pub fn update(&mut self, recording: &Recording, profile: &Profile, _programs: &Programs) {
        self.headline = format!(
            "{} samples of {}, threads: {}, lost: {}",
            profile.all.samples,
            recording.event,
            recording.threads.len(),
            recording.lost
        );
    }

    pub fn select_by(&mut self, by: isize) {
        let last = self.rows.saturating_sub(1);
        let now = self.state.selected().unwrap_or(0).saturating_add_signed(by).min(last);
        self.state.select(Some(now));
    }

    pub fn enter(&mut self, profile: &Profile, programs: &Programs) {
        let selected = self.state.selected().unwrap_or(0);
        let next = match self.level {
            Level::Functions => profile.functions.get(selected).map(|function| Level::Loops(function.home)),
            // The first row is the whole function.
            Level::Loops(home) => {
                let loops =
                    function(profile, home).map(|function| profile.loops(programs, function)).unwrap_or_default();
                let chosen = selected.checked_sub(1).and_then(|i| loops.get(i)).map(|l| l.id);
                programs.function(&home).map(|_| Level::Instructions(home, chosen))
            }
            Level::Instructions(..) => None,
        };
        if let Some(next) = next {
            self.above.push(selected);
            self.level = next;
            self.state.select(Some(0));
        }
    }

    pub fn leave(&mut self) {
        self.level = match self.level {
            Level::Functions => return,
            Level::Loops(_) => Level::Functions,
            Level::Instructions(home, _) => Level::Loops(home),
        };
        self.state.select(Some(self.above.pop().unwrap_or(0)));
    }

    pub fn draw(&mut self, frame: &mut Frame<'_>, profile: &Profile, programs: &Programs) {
        let [head, body, foot] =
            Layout::vertical([Constraint::Length(1), Constraint::Min(3), Constraint::Length(1)]).areas(frame.area());
        let bold = Style::new().add_modifier(Modifier::BOLD);
        let title = match self.level {
            Level::Functions => self.subject.clone(),
            Level::Loops(home) | Level::Instructions(home, _) => {
                let name = function(profile, home).map_or("(no samples)", |function| function.name.as_str());
                format!("{}: {name}", self.subject)
            }
        };
        frame.render_widget(Line::styled(format!("{title}  {}", self.headline), bold), head);
        let (titles, widths, rows) = match self.level {
            Level::Functions => functions(profile, programs),
            Level::Loops(home) => loops(profile, programs, home),
            Level::Instructions(home, chosen) => instructions(profile, programs, home, chosen),
        };
        self.rows = rows.len();
        if self.state.selected().unwrap_or(0) >= self.rows {
            self.state.select(Some(self.rows.saturating_sub(1)));
        }
        let table = Table::new(rows, widths)
            .header(Row::new(titles).style(bold))
            .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED));
        frame.render_stateful_widget(table, body, &mut self.state);
        let keys = "up/down select  Enter in  Esc out  z forget  q end";
        frame.render_widget(Line::styled(keys, Style::new().fg(Color::DarkGray)), foot);
    }
}

type Content = (Vec<&'static str>, Vec<Constraint>, Vec<Row<'static>>);

fn function(profile: &Profile, home: Home) -> Option<&HotFunction> {
    profile.functions.iter().find(|function| function.home == home)
}

fn percent(percent: f64) -> String {
    format!("{percent:6.1}%")
}

/// Hot is red.
fn heat(percent: f64) -> Style {
    match percent {
        20.0.. => Style::new().fg(Color::Red),
        5.0.. => Style::new().fg(Color::Yellow),
        _ => Style::new(),
    }
}

fn functions(profile: &Profile, programs: &Programs) -> Content {
    let row = |function: &HotFunction| {
        let own = function.own.percent(profile.all);
        let cells = [
            percent(own),
            percent(function.total.percent(profile.all)),
            function.name.clone(),
            programs.file_name(&function.home).to_owned(),
        ];
        Row::new(cells).style(heat(own))
    };
    let rows = profile.functions.iter().map(row).collect();
    let widths = vec![Constraint::Length(8), Constraint::Length(8), Constraint::Fill(3), Constraint::Fill(1)];
    (vec!["    OWN", "  TOTAL", "FUNCTION", "OBJECT"], widths, rows)
}

fn loops(profile: &Profile, programs: &Programs, home: Home) -> Content {
    let mut rows = Vec::new();
    if let Some(function) = function(profile, home) {
        let own = function.own.percent(profile.all);
        rows.push(Row::new([percent(own), "whole function".to_owned()]).style(heat(own)));
        for l in profile.loops(programs, function) {
            let share = l.share.percent(profile.all);
            let indent = "  ".repeat(l.depth as usize);
            rows.push(
                Row::new([percent(share), format!("{indent}loop {}, depth {}", l.header, l.depth)]).style(heat(share)),
            );
        }
    }
    (vec!["    OWN", "LOOP"], vec![Constraint::Length(8), Constraint::Fill(1)], rows)
}

fn instructions(profile: &Profile, programs: &Programs, home: Home, chosen: Option<LoopId>) -> Content {
    let mut rows = Vec::new();
    if let (Some(function), Some((object, id))) = (function(profile, home), programs.function(&home)) {
        let func = object.program.func(id);
        let listing = disasm::disasm(object, func, disasm::Options::default(), None);
        for (block, listed) in func.block_ids().zip(&listing.blocks) {
            if chosen.is_some_and(|l| !func.loops.contains(l, block.0)) {
                continue;
            }
            for (insn, line) in object.program.insns(func.block(block)).iter().zip(&listed.instructions) {
                let Svma(at) = insn.at;
                let share = function.at.get(&at).map_or(0.0, |share| share.percent(profile.all));
                let shown = if share > 0.0 { percent(share) } else { String::new() };
                rows.push(Row::new([shown, line.address.clone(), line.text.clone()]).style(heat(share)));
            }
            rows.push(Row::new([String::new()]));
        }
    }
    let widths = vec![Constraint::Length(8), Constraint::Length(14), Constraint::Fill(1)];
    (vec!["    OWN", "ADDRESS", "INSTRUCTION"], widths, rows)
}
