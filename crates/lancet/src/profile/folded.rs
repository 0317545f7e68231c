//! Call chains as lines, `outermost;...;innermost count`, and the flame graph drawn from them.

use std::collections::BTreeMap;
use std::io::{self, Write};

use lancet_engine::collect::Recording;

use super::Profile;

/// Each chain once, with its samples. The thread's name is the outermost frame.
pub fn folded(recording: &Recording, profile: &Profile) -> BTreeMap<String, u64> {
    let mut by_chain: BTreeMap<(u32, &str), u64> = BTreeMap::new();
    for sample in &recording.samples {
        let thread = recording.threads[sample.thread as usize].name.as_str();
        *by_chain.entry((sample.stack.0, thread)).or_default() += 1;
    }
    let mut lines: BTreeMap<String, u64> = BTreeMap::new();
    for ((stack, thread), count) in by_chain {
        let mut chain: Vec<&str> = recording
            .chain(lancet_engine::collect::StackId(stack))
            .map(|frame| profile.function_of(frame).name.as_str())
            .collect();
        chain.push(thread);
        chain.reverse();
        // A semicolon would end the frame; operators and lambdas have none, but some languages do.
        let line = chain.iter().map(|name| name.replace(';', ":")).collect::<Vec<_>>().join(";");
        *lines.entry(line).or_default() += count;
    }
    lines
}

/// An SVG that is complete in itself.
pub fn write_flame_graph(lines: &BTreeMap<String, u64>, title: &str, out: &mut dyn Write) -> io::Result<()> {
    let lines: Vec<String> = lines.iter().map(|(chain, count)| format!("{chain} {count}")).collect();
    let mut options = inferno::flamegraph::Options::default();
    options.title = title.to_owned();
    options.deterministic = true;
    inferno::flamegraph::from_lines(&mut options, lines.iter().map(String::as_str), out)
}
