//! Standard output: buffered, with colours and a width if it is a terminal.

use std::io::{self, BufWriter, StdoutLock, Write};
use std::os::fd::AsFd;

use anstream::stream::RawStream;
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
        let text = text_for(&stdout, color);
        Output { out: BufWriter::with_capacity(1 << 16, stdout.lock()), text }
    }

    pub fn finish(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// How to write text to standard output or standard error.
pub fn text_for<S: RawStream + AsFd>(stream: &S, color: WhenColor) -> Text {
    let colours = match color {
        WhenColor::Always => true,
        WhenColor::Never => false,
        WhenColor::Auto => anstream::AutoStream::choice(stream) != anstream::ColorChoice::Never,
    };
    let palette = if colours { Palette::colours() } else { Palette::default() };
    let terminal = stream.is_terminal().then(|| terminal_size::terminal_size_of(stream)).flatten();
    Text { palette, width: terminal.map(|(width, _)| usize::from(width.0)) }
}
