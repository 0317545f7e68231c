//! Tools that call routines of their own in the edited program.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use lancet::isa::Reg;
use lancet::load::Module;
use lancet::plan::{Argument, Point};
use lancet::rewrite::Editor;
use lancet::tool::{self, Counters, Site, Tool};

/// The second argument of the convention is not an integer here; the first is in rdi.
const RDI: Reg = Reg(7);

struct Ledger(Arc<Module>);

impl Tool for Ledger {
    fn payload(&self) -> Option<Arc<Module>> {
        Some(Arc::clone(&self.0))
    }

    fn instrument(&mut self, site: &mut Site<'_>) {
        let called = match site.name().as_str() {
            "pay" => site.call(Point::Entry(0), "enter", &[Argument::Number(3), Argument::Register(RDI)]),
            "done" => site.call(Point::Exit(0), "tell", &[]),
            _ => Ok(()),
        };
        called.expect("routines of the payload");
    }

    fn report(&self, _: &Counters, _: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }
}

fn gcc(folder: &Path, source: &str, name: &str, flags: &str) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/x86_64/rewrite").join(source);
    let out = folder.join(name);
    let status = Command::new("gcc").args(flags.split(' ')).arg(source).arg("-o").arg(&out).status();
    assert!(status.expect("gcc runs").success());
    out
}

const PAYLOAD: &str = "-O2 -mgeneral-regs-only -fPIC -ffreestanding -c";

fn edit(program: &Path, payload: &Path) -> Result<String, String> {
    let mut tool = Ledger(Arc::new(Module::open(payload).map_err(|error| error.to_string())?));
    let editor = Editor::open(program, &|_, _| true).map_err(|error| error.to_string())?;
    let plan = tool::plan(&mut tool, &editor);
    let edited = program.with_extension("edited");
    editor.write_plan(&edited, &plan).map_err(|error| error.to_string())?;
    let output = Command::new(&edited).current_dir(program.parent().expect("a folder")).output().expect("it runs");
    assert!(output.status.success(), "{output:?}");
    Ok(String::from_utf8(output.stdout).expect("UTF-8"))
}

#[test]
fn routines_see_arguments_and_leave_no_trace() {
    let folder = tempfile::tempdir().expect("a folder");
    let payload = gcc(folder.path(), "ledger.c", "ledger.o", PAYLOAD);
    for flags in ["-O2", "-O0", "-O2 -no-pie -fno-pie", "-O2 -static"] {
        let program = gcc(folder.path(), "paid.c", "paid", flags);
        assert_eq!(edit(&program, &payload).as_deref(), Ok("2525.0\n15150\n"), "{flags}");
    }
}

#[test]
fn payloads_that_cannot_work_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = gcc(folder.path(), "paid.c", "paid", "-O2");
    let vectors = gcc(folder.path(), "ledger.c", "vectors.o", "-O2 -DVECTORS -fPIC -ffreestanding -c");
    let error = edit(&program, &vectors).expect_err("it changes vector registers");
    assert!(error.contains("enter changes a register at ") && error.contains("-mgeneral-regs-only"), "{error}");
    let module = Arc::new(Module::open(&gcc(folder.path(), "ledger.c", "ledger.o", PAYLOAD)).expect("a module"));
    let mut plan = lancet::plan::Plan::new();
    assert!(plan.call("enter", &[]).is_err(), "no payload yet");
    plan.set_payload(module);
    let error = plan.call("gone", &[]).expect_err("no such routine").to_string();
    assert!(error.contains("ledger.o: no function gone in it; there are "), "{error}");
}
