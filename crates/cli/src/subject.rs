//! What a command looks at: `FILE`, or `--pid PID` with or without `--object NAME`.

use std::ffi::OsString;
use std::path::Path;

use clap::CommandFactory;
use clap::error::ErrorKind;
use lancet::program::Func;
use lancet::{Object, Opened, Subject, lookup};
use lancet_sys::allocator;

use crate::Cli;
use crate::progress::Progress;

#[derive(clap::Args)]
pub struct SubjectArgs {
    /// An ELF file: a program or a shared library
    #[arg(value_name = "FILE", required_unless_present = "pid")]
    file: Option<OsString>,
    /// Look at a running process instead of a file; it is not stopped
    #[arg(long, value_name = "PID", value_parser = clap::value_parser!(u32).range(1..))]
    pid: Option<u32>,
    /// Look only at this object of the process: a path, or the beginning of a file name (libc)
    #[arg(long, value_name = "NAME", requires = "pid")]
    object: Option<String>,
}

impl SubjectArgs {
    /// With `--pid` there is no FILE, so what clap took for one is the FUNCTION.
    pub fn shift(&mut self, command: &str, function: &mut Option<String>) -> Result<(), clap::Error> {
        if self.pid.is_none() {
            return Ok(());
        }
        match (self.file.take(), &function) {
            (Some(file), None) => *function = Some(file.to_string_lossy().into_owned()),
            (Some(_), Some(_)) => {
                return Err(misuse(command, ErrorKind::ArgumentConflict, "--pid takes the place of FILE"));
            }
            (None, _) => {}
        }
        Ok(())
    }

    pub fn file(&self) -> Option<&OsString> {
        self.file.as_ref()
    }

    /// Opens and analyses it. The process ends with the command, so nothing is given back piece by piece, which would take
    /// a tenth of the time.
    pub fn load(&self, command: &str) -> anyhow::Result<&'static Subject> {
        let opened = match (self.pid, &self.file) {
            (Some(_), Some(_)) => {
                return Err(misuse(command, ErrorKind::ArgumentConflict, "--pid takes the place of FILE").into());
            }
            (Some(pid), None) => Opened::process(pid, self.object.as_deref())?,
            (None, Some(file)) => Opened::file(Path::new(file))?,
            (None, None) => {
                return Err(misuse(command, ErrorKind::MissingRequiredArgument, "FILE or --pid is missing").into());
            }
        };
        for skipped in opened.skipped() {
            eprintln!("lancet: left out: {skipped}");
        }
        allocator::give_back_soon(opened.code_len());
        let progress = Progress::new(opened.names().len());
        let mut done = 0;
        let subject = opened.analyse(|name| {
            progress.step(done, name);
            done += 1;
        });
        Ok(Box::leak(Box::new(subject)))
    }
}

/// An error in the arguments that clap cannot see.
pub fn misuse(command: &str, kind: ErrorKind, what: &str) -> clap::Error {
    let mut cli = Cli::command();
    cli.build();
    match cli.find_subcommand_mut(command) {
        Some(command) => command.error(kind, what),
        None => cli.error(kind, what),
    }
}

/// The object's name, where reports should show it.
pub fn shown(subject: &Subject, object: &Object) -> Option<String> {
    subject.pid.map(|_| object.name().to_owned())
}

/// A function and the object that it is in.
pub type Chosen<'s> = (&'s Object, &'s Func);

/// The function that was asked for, or all.
pub fn functions<'s>(subject: &'s Subject, query: Option<&str>) -> anyhow::Result<Vec<Chosen<'s>>> {
    match query {
        Some(query) => {
            let (object, id) = lookup::find(subject, query)?;
            Ok(vec![(object, object.program.func(id))])
        }
        None => {
            let of_object = |object: &'s Object| object.program.funcs().iter().map(move |func| (object, func));
            Ok(subject.objects.iter().flat_map(of_object).collect())
        }
    }
}
