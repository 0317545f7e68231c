//! Looking at a process that runs.

use std::fs;
use std::process::{Child, Command, Stdio};

use crate::live::wait_until_started;
use crate::{json, lancet, lancet_line, sample_folder};

/// The sample program, waiting for input.
struct Running(Child);

impl Running {
    fn start() -> Running {
        let program = sample_folder().join("sample.elf");
        let child =
            Command::new(program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the sample runs");
        let running = Running(child);
        wait_until_started(running.0.id());
        running
    }

    fn pid(&self) -> String {
        self.0.id().to_string()
    }

    fn state(&self) -> String {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.0.id())).expect("it is there");
        stat.rsplit_once(") ").and_then(|(_, rest)| rest.get(..1)).unwrap_or_default().to_owned()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

fn number(hex: &serde_json::Value) -> u64 {
    let digits = hex.as_str().and_then(|text| text.strip_prefix("0x")).expect("a hexadecimal number");
    u64::from_str_radix(digits, 16).expect("a number")
}

#[test]
fn all_objects_of_a_process() {
    let running = Running::start();
    let list = json(&lancet(["functions", "--json", "--pid", &running.pid()]).good());
    assert_eq!(list["pid"].to_string(), running.pid());
    let objects = list["objects"].as_array().expect("an array");
    let named = |end: &str| {
        let object = objects.iter().find(|object| object["object"].as_str().is_some_and(|name| name.ends_with(end)));
        object.unwrap_or_else(|| panic!("no object {end}"))
    };
    let (sample, _, _) = (named("/sample.elf"), named("/libc.so.6"), named("[vdso]"));

    // The same functions as in the file, at the same stated addresses.
    let mut from_process = list["functions"].as_array().expect("an array").clone();
    assert!(from_process.iter().any(|function| function["object"] != sample["object"]));
    from_process.retain(|function| function["object"] == sample["object"]);
    for function in &mut from_process {
        function.as_object_mut().expect("an object").remove("object");
    }
    let from_file = json(&lancet_line("functions --json sample.elf").good());
    assert_eq!(from_file["functions"].as_array(), Some(&from_process));

    assert_eq!(running.state(), "S", "it was not stopped");
    let status = fs::read_to_string(format!("/proc/{}/status", running.pid())).expect("it is there");
    assert!(status.contains("TracerPid:\t0\n"));
}

#[test]
fn one_object_and_actual_addresses() {
    let running = Running::start();
    let pid = running.pid();
    let list = json(&lancet(["functions", "--json", "--filter", "^main$", "--object", "sample", "--pid", &pid]).good());
    let (bias, main) = (number(&list["objects"][0]["bias"]), number(&list["functions"][0]["address"]));
    assert_ne!(bias, 0);
    let actual = format!("{:#x}", bias + main + 1);
    let first_line = |query: &str| {
        let output = lancet(["disasm", "--object", "sample", "--pid", &pid, query]).good();
        output.lines().next().unwrap_or_default().to_owned()
    };
    assert!(first_line("main").starts_with(&format!("{main:#x} main: ")));
    assert_eq!(first_line(&actual), first_line("main"));
    assert_eq!(first_line(&format!("{main:#x}")), first_line("main"));

    let text = lancet(["functions", "--object", "sample.elf", "--pid", &pid]).good();
    assert!(text.contains(&format!("sample.elf (loaded at {bias:#x})\n")));
    assert_eq!(running.state(), "S");
}

#[test]
fn objects_that_are_not_mapped() {
    let running = Running::start();
    let line = lancet(["functions", "--object", "libnothing", "--pid", &running.pid()]).error_line();
    let start = format!("lancet: process {}: libnothing: no object of this name is mapped; there are ", running.pid());
    assert!(line.starts_with(&start) && line.contains("libc"), "{line}");
}
