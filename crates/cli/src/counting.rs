//! How counts are shown: the options that `report` and `count` share.

use std::io::{self, Write};
use std::path::PathBuf;

use lancet::report::counts::summary::Summary;
use lancet::report::counts::{callgrind, fdata, html, json, lcov};
use lancet::report::text::Text;
use lancet::tools::count::Counted;

use crate::beside;

#[derive(clap::Args)]
pub struct ReportArgs {
    /// Show so many functions, loops and branches
    #[arg(long, value_name = "N", default_value_t = 10)]
    top: usize,
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = Format::Text)]
    format: Format,
    /// The same as --format json
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// Write the report to this file
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// The hottest functions and loops, branches by bias
    Text,
    /// Every function, block, edge, entry, exit and call
    Json,
    /// For KCachegrind and callgrind_annotate
    Callgrind,
    /// Coverage of source lines, for lcov and genhtml
    Lcov,
    /// For llvm-bolt -data: the branches of the program, without its libraries
    Fdata,
    /// A page with tables and control-flow graphs coloured by heat
    Html,
}

impl Format {
    /// Without this nothing can be said in the format.
    fn needs(self) -> Option<&'static str> {
        match self {
            Format::Lcov => Some("source lines"),
            Format::Fdata => Some("symbols"),
            _ => None,
        }
    }
}

impl ReportArgs {
    pub fn is_json(&self) -> bool {
        self.json
    }

    pub fn is_text(&self) -> bool {
        self.format == Format::Text && !self.json
    }

    /// Writes to `out`, unless a file was asked for. A doubt stands in front of a text.
    pub fn write(
        &self,
        objects: &[Counted],
        doubt: Option<String>,
        out: &mut dyn Write,
        text: &Text,
    ) -> anyhow::Result<()> {
        if let Some(needed) = self.format.needs() {
            let mut report = Vec::new();
            self.render(objects, &mut report, text)?;
            if report.is_empty() {
                let names: Vec<&str> = objects.iter().map(Counted::name).collect();
                anyhow::bail!("{}: there is nothing to show in this format: it has no {needed}", names.join(", "));
            }
            return self.to_place(out, text, |out, _| out.write_all(&report));
        }
        self.to_place(out, text, |out, text| {
            if let Some(doubt) = doubt {
                writeln!(out, "{doubt}")?;
            }
            self.render(objects, out, text)
        })
    }

    /// Only how many instructions were executed.
    pub fn write_total(&self, objects: &[Counted], out: &mut dyn Write) -> anyhow::Result<()> {
        let total: u64 = objects.iter().map(Counted::instructions).sum();
        self.to_place(out, &Text::default(), |out, _| writeln!(out, "{total} instructions"))
    }

    fn to_place(
        &self,
        out: &mut dyn Write,
        text: &Text,
        render: impl FnOnce(&mut dyn Write, &Text) -> io::Result<()>,
    ) -> anyhow::Result<()> {
        match &self.output {
            None => Ok(render(out, text)?),
            Some(path) => {
                // Whatever the terminal can show, the file is for later.
                let written = beside::write(path, |out| render(out, &Text::default()));
                Ok(written.map_err(|cause| lancet::Error::File { path: path.display().to_string(), cause })?)
            }
        }
    }

    fn render(&self, objects: &[Counted], out: &mut dyn Write, text: &Text) -> io::Result<()> {
        match if self.json { Format::Json } else { self.format } {
            Format::Text => Summary::of(objects).write_text(self.top, out, text),
            Format::Json => json::write(objects, out),
            Format::Callgrind => callgrind::write(objects, out),
            Format::Lcov => lcov::write(objects, out),
            Format::Fdata => objects.first().map_or(Ok(()), |counted| fdata::write(counted, out)),
            Format::Html => html::write(objects, self.top, out),
        }
    }
}
