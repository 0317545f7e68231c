//! Text for people: colours, and columns that line up.
//!
//! Renderers write to any [`io::Write`] and ask [`Text`] how: a [`Palette`] without colours for files and pipes, a width
//! for terminals. Only a table's last column is ever cut, and only to a width.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};

/// How to write text.
#[derive(Clone, Copy, Default, Debug)]
pub struct Text {
    pub palette: Palette,
    /// Columns of the terminal; `None`: lines may have any length.
    pub width: Option<usize>,
}

/// Styles by meaning. The default has no colours.
#[derive(Clone, Copy, Default, Debug)]
pub struct Palette {
    pub heading: Style,
    pub name: Style,
    pub address: Style,
    /// Loops and their nesting.
    pub loops: Style,
    /// What is known less surely than the rest.
    pub doubt: Style,
    pub aside: Style,
}

impl Palette {
    pub fn colours() -> Palette {
        Palette {
            heading: Style::new().bold(),
            name: Style::new().bold(),
            address: AnsiColor::Cyan.on_default(),
            loops: AnsiColor::Green.on_default(),
            doubt: AnsiColor::Yellow.on_default(),
            aside: Style::new().dimmed(),
        }
    }
}

/// `text` in a style.
pub(super) fn styled(text: impl std::fmt::Display, style: Style) -> String {
    format!("{style}{text}{style:#}")
}

pub(super) struct Table {
    columns: Vec<Column>,
    lines: Vec<Line>,
}

pub(super) struct Column {
    title: &'static str,
    right: bool,
}

pub(super) fn left(title: &'static str) -> Column {
    Column { title, right: false }
}

pub(super) fn right(title: &'static str) -> Column {
    Column { title, right: true }
}

enum Line {
    /// With what follows the last column, never cut.
    Row(Vec<Cell>, String),
    Text(String),
}

pub(super) struct Cell {
    text: String,
    style: Style,
}

pub(super) fn cell(text: impl ToString, style: Style) -> Cell {
    Cell { text: text.to_string(), style }
}

pub(super) fn plain(text: impl ToString) -> Cell {
    cell(text, Style::new())
}

impl Table {
    pub(super) fn new(columns: Vec<Column>) -> Table {
        Table { columns, lines: Vec::new() }
    }

    pub(super) fn row(&mut self, cells: Vec<Cell>) {
        self.lines.push(Line::Row(cells, String::new()));
    }

    pub(super) fn row_with_note(&mut self, cells: Vec<Cell>, note: String) {
        self.lines.push(Line::Row(cells, note));
    }

    /// A line across all columns.
    pub(super) fn text(&mut self, line: String) {
        self.lines.push(Line::Text(line));
    }

    pub(super) fn write(&self, out: &mut dyn Write, text: &Text) -> io::Result<()> {
        let widths = self.widths();
        let titles = self.columns.iter().map(|column| cell(column.title, text.palette.heading)).collect::<Vec<_>>();
        self.write_row(out, &titles, "", &widths, text)?;
        for line in &self.lines {
            match line {
                Line::Row(cells, note) => self.write_row(out, cells, note, &widths, text)?,
                Line::Text(line) => writeln!(out, "{line}")?,
            }
        }
        Ok(())
    }

    fn widths(&self) -> Vec<usize> {
        let mut widths: Vec<usize> = self.columns.iter().map(|column| column.title.len()).collect();
        for line in &self.lines {
            if let Line::Row(cells, _) = line {
                for (width, cell) in widths.iter_mut().zip(cells) {
                    *width = (*width).max(cell.text.chars().count());
                }
            }
        }
        widths
    }

    fn write_row(
        &self,
        out: &mut dyn Write,
        cells: &[Cell],
        note: &str,
        widths: &[usize],
        text: &Text,
    ) -> io::Result<()> {
        let mut used = 0;
        for (i, ((cell, column), &width)) in cells.iter().zip(&self.columns).zip(widths).enumerate() {
            let is_last = i + 1 == self.columns.len();
            let room = text.width.filter(|_| is_last).map(|columns| columns.saturating_sub(used).max(8));
            let shown = cut(&cell.text, room.unwrap_or(usize::MAX));
            let padding = " ".repeat(width.saturating_sub(shown.chars().count()));
            let style = cell.style;
            let (before, after) = if column.right { (&*padding, "") } else { ("", &*padding) };
            write!(out, "{before}{style}{shown}{style:#}")?;
            // Nothing is written behind the last text of a row.
            if cells[i + 1..].iter().all(|cell| cell.text.is_empty()) {
                break;
            }
            write!(out, "{after}  ")?;
            used += width + 2;
        }
        writeln!(out, "{note}")
    }
}

/// At most `width` characters of `text`; `…` stands for what is missing.
pub(super) fn cut(text: &str, width: usize) -> std::borrow::Cow<'_, str> {
    if text.len() <= width || text.chars().count() <= width {
        return text.into();
    }
    let mut short: String = text.chars().take(width.saturating_sub(1)).collect();
    short.push('…');
    short.into()
}

/// Ascending numbers, neighbours as one: `1, 4-7`.
pub(super) fn runs(numbers: &[usize]) -> String {
    let texts = numbers.chunk_by(|a, b| a + 1 == *b).map(|run| match run {
        [first, .., last] => format!("{first}-{last}"),
        run => run.iter().map(ToString::to_string).collect(),
    });
    texts.collect::<Vec<_>>().join(", ")
}

/// Says so if a function is not in one piece.
pub(super) fn parts(parts: usize) -> String {
    if parts > 1 { format!(" in {parts} parts") } else { String::new() }
}

/// `1 block`, `2 blocks`.
pub(super) fn count(n: impl Into<u64>, thing: &str) -> String {
    let n = n.into();
    format!("{n} {thing}{}", if n == 1 { "" } else { "s" })
}

/// A number with its digits in groups of three: `1,234,567`.
pub(super) fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_in_groups() {
        assert_eq!([0, 999, 1000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
    }

    fn written(table: &Table, width: Option<usize>) -> String {
        let mut out = Vec::new();
        table.write(&mut out, &Text { palette: Palette::default(), width }).expect("a vector takes everything");
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn columns_line_up_and_only_the_last_is_cut() {
        let mut table = Table::new(vec![right("SIZE"), left("KIND"), left("NAME")]);
        table.row(vec![plain(12345), plain("a"), plain("first_function")]);
        table.row_with_note(vec![plain(7), plain("loop"), plain("f")], " (why)".into());
        table.text("across".into());
        table.row(vec![plain(7), plain(""), plain("")]);
        let whole = " SIZE  KIND  NAME\n12345  a     first_function\n    7  loop  f (why)\nacross\n    7\n";
        assert_eq!(written(&table, None), whole);
        assert_eq!(written(&table, Some(22)).lines().nth(1), Some("12345  a     first_fu…"));
    }
}
