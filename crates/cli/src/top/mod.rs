//! `lancet top`: a profile that goes on, on the whole terminal.
//!
//! Samples of the last seconds are added up again and again; the view shows functions, then the loops of one, then
//! instructions with their shares. Keys only change what is shown.

mod view;

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use clap::error::ErrorKind;
use lancet::collect::{Sampler, Scope};
use lancet::profile::{Profile, Programs};
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind};

use crate::sampling::{RateArgs, ScopeArgs, name_of};
use crate::subject::misuse;
use view::View;

/// Show where a running process spends its time, as it runs
#[derive(clap::Args)]
#[command(override_usage = "lancet top [OPTIONS] <--pid PID | --cpu N | --system>", after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    scope: ScopeArgs,
    #[command(flatten)]
    rate: RateArgs,
    /// Show samples of so many last seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 5)]
    window: u64,
}

const EXAMPLES: &str = "\
Keys: up and down select, Enter goes from a function to its loops and on to the
instructions, Esc or Backspace goes back, z forgets all samples, q ends.

Examples:
  lancet top --pid 1234
  lancet top --system --window 2";

/// How often keys are looked at, and how often the numbers change.
const TICK: Duration = Duration::from_millis(50);
const REFRESH: Duration = Duration::from_millis(500);

pub fn run(args: Args) -> anyhow::Result<()> {
    let scope = args.scope.scope_or_misuse("top")?;
    if !std::io::stdout().is_terminal() {
        return Err(misuse("top", ErrorKind::ValueValidation, "standard output is not a terminal").into());
    }
    let mut sampler = Sampler::start(scope, &args.rate.options()?).map_err(lancet::Error::from)?;
    let mut terminal = ratatui::init();
    let result = show(&mut terminal, &mut sampler, scope, Duration::from_secs(args.window.max(1)));
    ratatui::restore();
    result
}

fn show(
    terminal: &mut ratatui::DefaultTerminal,
    sampler: &mut Sampler,
    scope: Scope,
    window: Duration,
) -> anyhow::Result<()> {
    let mut programs = Programs::default();
    let mut view = View::new(name_of(scope));
    let mut profile = Profile::new(sampler.recording(), &mut programs);
    let mut refreshed = Instant::now();
    loop {
        sampler.take_within(TICK).map_err(lancet::Error::from)?;
        if refreshed.elapsed() >= REFRESH {
            let recording = sampler.recording();
            let newest = recording.samples.last().map_or(0, |sample| sample.time);
            let oldest = newest.saturating_sub(window.as_nanos() as u64);
            recording.samples.retain(|sample| sample.time >= oldest);
            profile = Profile::new(recording, &mut programs);
            view.update(recording, &profile, &programs);
            refreshed = Instant::now();
        }
        terminal.draw(|frame| view.draw(frame, &profile, &programs))?;
        while event::poll(Duration::ZERO)? {
            let Event::Key(key) = event::read()? else { continue };
            match key.code {
                _ if key.kind != KeyEventKind::Press => {}
                KeyCode::Char('q') => return Ok(()),
                KeyCode::Char('c') if key.modifiers.contains(event::KeyModifiers::CONTROL) => return Ok(()),
                KeyCode::Char('z') => sampler.recording().clear_samples(),
                KeyCode::Up | KeyCode::Char('k') => view.select_by(-1),
                KeyCode::Down | KeyCode::Char('j') => view.select_by(1),
                KeyCode::PageUp => view.select_by(-20),
                KeyCode::PageDown => view.select_by(20),
                KeyCode::Enter | KeyCode::Right => view.enter(&profile, &programs),
                KeyCode::Esc | KeyCode::Backspace | KeyCode::Left => view.leave(),
                _ => {}
            }
        }
    }
}
