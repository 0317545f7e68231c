//! Arguments: what they do, and what makes no sense (exit status 2).

use crate::{command, json, lancet, lancet_line};

#[test]
fn wrong_usage_has_its_own_status() {
    let wrong = [
        "",
        "functions",
        "nonsense",
        "functions --nonsense sample.elf",
        "functions sample.elf --sort weight",
        "functions sample.elf --filter (",
        "functions sample.elf --summary --partial",
        "functions --pid 0",
        "functions --pid 1 sample.elf",
        "functions sample.elf --object libc",
        "functions sample.elf --threads 0",
        "loops --pid 1 main main",
        "cfg sample.elf",
        "cfg sample.elf main --all",
        "cfg sample.elf --all --format svg",
        "cfg sample.elf main --format png",
        "disasm sample.elf",
        "disasm sample.elf main --syntax nasm",
    ];
    for line in wrong {
        let arguments = line.split(' ').filter(|argument| !argument.is_empty());
        let ran = lancet(arguments);
        assert_eq!((ran.status, ran.stdout.as_str()), (Some(2), ""), "lancet {line}");
        assert!(
            ran.stderr.contains("try '--help'") || ran.stderr.contains("Usage: lancet"),
            "lancet {line}: {}",
            ran.stderr
        );
    }
}

#[test]
fn help_has_examples() {
    assert!(lancet_line("--version").good().starts_with("lancet "));
    for name in ["functions", "loops", "cfg", "disasm"] {
        assert!(lancet([name, "--help"]).good().contains(&format!("Examples:\n  lancet {name} ")), "{name}");
    }
    assert!(lancet_line("--help").good().contains("Examples:\n  lancet "));
}

#[test]
fn a_function_by_all_its_names() {
    let first_line = |query: &str| {
        let output = lancet(["cfg", "sample.elf", query]).good();
        output.lines().next().unwrap_or_default().split(':').next().unwrap_or_default().to_owned()
    };
    for query in ["calculate", "calculate.cold", "0x12d0", "0x1304", "0x10a8"] {
        assert_eq!(first_line(query), "0x12d0 calculate", "{query}");
    }
    let largest = first_line("_ZN6shapes7largestIiEET_PKS1_i");
    for query in [
        "shapes::largest<int>",
        "int shapes::largest<int>(int const*, int)",
        "int shapes::largest<int>(int const *,int)",
    ] {
        assert_eq!(first_line(query), largest, "{query}");
    }
    assert!(first_line("shapes::sum(int, int)").starts_with("0x1430 "));
    assert!(first_line("printf@plt").starts_with("0x1030 "));
    assert!(first_line("sub_1020").starts_with("0x1020 "));
}

#[test]
fn filters_look_at_both_names() {
    let names = |pattern: &str| {
        let list = json(&lancet(["functions", "sample.elf", "--json", "--filter", pattern]).good());
        list["functions"].as_array().expect("an array").len()
    };
    assert_eq!(names("^shapes::"), 3);
    assert_eq!(names("^_ZNK?6shapes"), 4);
    assert_eq!(names("nothing has this name"), 0);
}

#[test]
fn the_shape_of_functions() {
    let list = json(&lancet_line("functions sample.elf --json").good());
    assert_eq!(list["file"], "sample.elf");
    let functions = list["functions"].as_array().expect("an array");
    let sort = functions.iter().find(|function| function["name"] == "sort").expect("sort");
    assert_eq!((&sort["address"], &sort["size"]), (&"0x1260".into(), &74.into()));
    assert_eq!((&sort["blocks"], &sort["loops"], &sort["found_by"]), (&7.into(), &2.into(), &"symbol".into()));
    assert_eq!((&sort["status"], &sort["reason"]), (&"complete".into(), &serde_json::Value::Null));
    let leap = functions.iter().find(|function| function["name"] == "leap").expect("leap");
    assert_eq!(leap["status"], "partial");
    assert!(leap["reason"].as_str().expect("a reason").contains("indirect jump"));
}

#[test]
fn a_drawing_has_all_blocks_and_loops() {
    let svg = lancet_line("cfg sample.elf sort --format svg").good();
    assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
    for text in ["0x1260", "0x1278", "0x12a9", "loop 0x1270", "loop 0x1278", "pshufd"] {
        assert!(svg.contains(text), "{text}");
    }
    let short = lancet_line("cfg sample.elf main --format svg --block-lines 4").good();
    assert!(short.contains(" more<"));
}

#[test]
fn colours_only_when_wanted() {
    let coloured = |line: &str, no_color: bool| {
        let mut command = command(line.split(' '));
        if no_color {
            command.env("NO_COLOR", "1");
        }
        command.output().expect("lancet runs").stdout.contains(&0x1b)
    };
    assert!(!coloured("functions sample.elf", false), "a pipe is no terminal");
    assert!(coloured("functions sample.elf --color always", true));
    assert!(!coloured("functions sample.elf --color never", false));
}

#[test]
fn output_that_cannot_be_written_is_an_error() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("/dev/full");
    let output = command(["functions", "sample.elf"]).stdout(full).output().expect("lancet runs");
    assert_eq!(output.status.code(), Some(1));
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(error, "lancet: standard output: No space left on device (os error 28)\n");
}

#[test]
fn output_that_nobody_reads_is_no_error() {
    for line in ["functions sample.elf", "cfg sample.elf --all --json", "disasm sample.elf main", "--help"] {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let output = command(line.split(' ')).stdout(writer).output().expect("lancet runs");
        assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 0), "{line}");
    }
}
