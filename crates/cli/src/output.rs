//! Standard output: buffered, with colours and a width if it is a terminal.

use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};

use lancet::report::text::{Palette, Text};

#[derive(Clone, Copy, Default, clap::ValueEnum)]
pub enum WhenColor {
    /// On a terminal, unless NO_COLOR is set
    #[default]
    Auto,
    Always,
    Never,
}

pub struct Output {
    pub out: BufWriter<StdoutLock<'static>>,
    pub text: Text,
}

impl Output {
    pub fn new(color: WhenColor) -> Output {
        let stdout = io::stdout();
        let colours = match color {
            WhenColor::Always => true,
            WhenColor::Never => false,
            WhenColor::Auto => anstream::AutoStream::choice(&stdout) != anstream::ColorChoice::Never,
        };
        let palette = if colours { Palette::colours() } else { Palette::default() };
        let terminal = stdout.is_terminal().then(terminal_size::terminal_size).flatten();
        let width = terminal.map(|(width, _)| usize::from(width.0));
        Output { out: BufWriter::with_capacity(1 << 16, stdout.lock()), text: Text { palette, width } }
    }

    pub fn finish(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
