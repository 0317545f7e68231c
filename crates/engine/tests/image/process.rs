//! Running processes: this one, and children whose file is still there, gone, or replaced.

use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use lancet_engine::image::Process;
use lancet_isa::Avma;

use crate::support::{build, open};

/// A child that is killed when the test is over.
struct Running(Child);

impl Running {
    fn start(command: &mut Command) -> Running {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let mut output = child.stdout.take().expect("its output is a pipe");
        let running = Running(child);
        // Before its first word it may still be loading its libraries.
        output.read_exact(&mut [0]).expect("the child says that it runs");
        running
    }

    fn pid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[inline(never)]
fn landmark() -> u64 {
    std::hint::black_box(41) + 1
}

fn inspect(pid: u32) -> Process {
    Process::open(pid).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn this_process() {
    assert_eq!(landmark(), 42);
    let process = inspect(std::process::id());
    let at = Avma(landmark as *const () as usize as u64);
    let object = process.object_at(at).expect("code of this program");
    assert_eq!(object.path, process.main().path);
    assert_eq!(object.to_avma(object.to_svma(at)), at);
    let names: Vec<_> =
        object.image.symbols_at(object.to_svma(at)).iter().map(|s| object.image.symbol_name(s)).collect();
    assert!(names.iter().any(|name| name.contains("landmark")), "{names:?}");
    let fde = object.image.fde_at(object.to_svma(at)).expect("an FDE");
    assert_eq!(fde.start, object.to_svma(at));
    assert_eq!(process.object_at(Avma(8)).map(|object| &object.path), None);
}

#[test]
fn the_kernel_s_own_object_is_read_from_memory() {
    let process = inspect(std::process::id());
    let vdso = process.objects().iter().find(|object| object.path == "[vdso]").expect("a vdso");
    let names: Vec<_> = vdso.image.symbols().iter().map(|symbol| vdso.image.symbol_name(symbol)).collect();
    assert!(names.contains(&"__vdso_clock_gettime"), "{names:?}");
    assert!(!vdso.image.fdes().is_empty());
}

#[test]
fn a_child_with_its_libraries() {
    let built = build(&["-O1", "-g0"]);
    let child = Running::start(Command::new(&built.path).arg("wait"));
    let process = inspect(child.pid());
    assert_eq!(process.main().path, built.path.to_str().expect("a path in UTF-8"));
    assert!(process.objects().iter().any(|object| object.path.contains("libstdc++")));
    assert!(process.objects().iter().any(|object| object.path.contains("libc.so")));
    assert!(process.objects().windows(2).all(|pair| pair[0].range.end <= pair[1].range.start));
    assert!(process.skipped().is_empty());
}

#[test]
fn a_fixed_program_has_no_bias() {
    let built = build(&["-static", "-O1"]);
    let child = Running::start(Command::new(&built.path).arg("wait"));
    let process = inspect(child.pid());
    assert_eq!((process.main().bias, process.objects().len()), (0, 2));
}

#[test]
fn a_program_whose_file_was_deleted_or_replaced() {
    let built = build(&["-O1", "-g0"]);
    let file = open(&built.path);
    let (symbols, frames) = (file.symbols().len(), file.fdes().to_vec());
    let child = Running::start(Command::new(&built.path).arg("wait"));
    std::fs::remove_file(&built.path).expect("the file can be deleted");
    let deleted = inspect(child.pid());
    assert_eq!((deleted.main().image.symbols().len(), deleted.main().image.fdes()), (symbols, &frames[..]));

    std::fs::copy("/usr/bin/true", &built.path).expect("the file can be replaced");
    let replaced = inspect(child.pid());
    assert_eq!((replaced.main().image.symbols().len(), replaced.main().image.fdes()), (symbols, &frames[..]));
}

#[test]
fn processes_that_are_not_there() {
    let refusal = |pid: u32| Process::open(pid).err().map(|error| error.to_string());
    assert_eq!(refusal(u32::MAX).as_deref(), Some("process 4294967295: no such process"));

    let mut child = Command::new("true").spawn().expect("`true` runs");
    let pid = child.id();
    let deadline = Instant::now() + Duration::from_secs(10);
    let is_zombie = || std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| stat.contains(") Z "));
    while !is_zombie() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(5));
    }
    let expected = format!("process {pid}: has ended (zombie): it has no memory any more");
    assert_eq!(refusal(pid), Some(expected));
    child.wait().expect("the child is collected");
    assert_eq!(refusal(pid), Some(format!("process {pid}: no such process")));
}
