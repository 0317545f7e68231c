//! Rules about Rust source.
//!
//! The file is parsed into tokens with their lines (comments are gone, and doc comments have become attributes), and
//! the tree of tokens is walked once. Code under `#[cfg(test)]` may print and name instruction sets, as files of
//! tests and examples may; nothing else is excused there.

use std::iter::Peekable;

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree, token_stream};

use super::Findings;

const EXAMPLE_LINES: usize = 40;
const UNFINISHED: &[&str] = &["todo", "unimplemented", "dbg"];
const PRINTS: &[&str] = &["println", "eprintln", "print", "eprint"];

/// Idents that name an instruction set: our types, the `object` and `gimli` crates' names.
const INSTRUCTION_SETS: &[&str] = &["X86_64", "Mips", "Mips64", "Sparc", "Sparc64", "Blackfin"];

pub(super) fn check(path: &str, text: &str, findings: &mut Findings) {
    let tokens = match text.parse::<TokenStream>() {
        Ok(tokens) => tokens,
        Err(error) => {
            findings.add(error.span().start().line, "not valid Rust");
            return;
        }
    };
    check_head(path, text, findings);
    check_example(path, text, findings);
    let place = Place::of(path);
    let lines: Vec<&str> = text.lines().collect();
    Walk { place, lines: &lines, findings }.tokens(tokens, place.is_test);
}

/// What a file is, by its path.
#[derive(Clone, Copy)]
struct Place {
    is_sys: bool,
    /// In the command-line program or in xtask.
    may_print: bool,
    may_name_instruction_set: bool,
    is_test: bool,
}

impl Place {
    fn of(path: &str) -> Place {
        let within = |folder: &str| path.starts_with(&format!("{folder}/")) || path.contains(&format!("/{folder}/"));
        let in_crate = |name: &str| path.starts_with(&format!("crates/{name}/"));
        Place {
            is_sys: in_crate("sys"),
            may_print: in_crate("cli") || !path.starts_with("crates/"),
            // An instruction set's own folder defines it; `sys` is about the machine it runs on, and a simulator about
            // the one it simulates.
            may_name_instruction_set: in_crate("isa")
                || in_crate("sys")
                || in_crate("blackfin-sim")
                || !path.starts_with("crates/"),
            is_test: within("tests") || within("examples") || within("benches") || path.ends_with("/tests.rs"),
        }
    }
}

/// The file starts with a `//!` doc, and a crate's first file forbids unsafe code.
fn check_head(path: &str, text: &str, findings: &mut Findings) {
    let is_module = !path.starts_with("testdata/");
    let first = text.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with("#!"));
    if is_module && !first.is_some_and(|line| line.starts_with("//!")) {
        findings.add(1, "a module starts with a `//!` doc");
    }
    let in_src = path.strip_prefix("crates/").and_then(|rest| rest.split_once('/')).map(|(_, rest)| rest);
    let is_root = in_src.or(path.strip_prefix("xtask/")).is_some_and(|rest| {
        let bin = rest.strip_prefix("src/bin/").is_some_and(|rest| !rest.contains('/'));
        bin || rest == "src/lib.rs" || rest == "src/main.rs"
    });
    if is_root && !path.starts_with("crates/sys/") && !text.lines().any(|line| line.trim() == "#![forbid(unsafe_code)]")
    {
        findings.add(1, "a crate other than sys starts with #![forbid(unsafe_code)]");
    }
}

fn check_example(path: &str, text: &str, findings: &mut Findings) {
    let is_example = path.starts_with("examples/") || path.contains("/examples/");
    let is_code = |line: &&str| !line.trim().is_empty() && !line.trim_start().starts_with("//");
    let lines = text.lines().filter(is_code).count();
    if is_example && lines > EXAMPLE_LINES {
        findings.add(1, format!("an example has at most {EXAMPLE_LINES} lines of code; this one has {lines}"));
    }
}

struct Walk<'a, 'f> {
    place: Place,
    lines: &'a [&'a str],
    findings: &'a mut Findings<'f>,
}

impl Walk<'_, '_> {
    fn tokens(&mut self, stream: TokenStream, mut is_test: bool) {
        let outer = is_test;
        let mut tokens = stream.into_iter().peekable();
        while let Some(token) = tokens.next() {
            let line = token.span().start().line;
            match &token {
                TokenTree::Punct(p) if p.as_char() == '#' => {
                    if let Some(attribute) = next_attribute(&mut tokens) {
                        let words: String = attribute.stream().to_string().split_whitespace().collect();
                        is_test |= words == "cfg(test)";
                        self.attribute(&words, line, is_test);
                    }
                }
                // The end of the item that a `#[cfg(test)]` was on.
                TokenTree::Punct(p) if p.as_char() == ';' => is_test = outer,
                TokenTree::Punct(_) | TokenTree::Literal(_) => {}
                TokenTree::Ident(ident) => {
                    let is_macro = matches!(tokens.peek(), Some(TokenTree::Punct(p)) if p.as_char() == '!');
                    self.ident(&ident.to_string(), is_macro, line, is_test);
                    self.process_exit(&ident.to_string(), &tokens, line, is_test);
                }
                TokenTree::Group(group) => {
                    self.tokens(group.stream(), is_test);
                    if group.delimiter() == Delimiter::Brace {
                        is_test = outer;
                    }
                }
            }
        }
    }

    fn attribute(&mut self, words: &str, line: usize, is_test: bool) {
        if words == "ignore" || words.starts_with("ignore=") {
            self.findings.add(line, "no ignored tests");
        }
        if words.contains("target_arch") {
            self.instruction_set("target_arch", line, is_test);
        }
    }

    fn ident(&mut self, name: &str, is_macro: bool, line: usize, is_test: bool) {
        if is_macro && UNFINISHED.contains(&name) {
            self.findings.add(line, format!("no {name}!"));
        }
        if is_macro && PRINTS.contains(&name) && !self.place.may_print && !is_test {
            self.findings.add(line, format!("only cli and xtask print: {name}!"));
        }
        if name == "unsafe" && self.place.is_sys && !self.is_justified(line) {
            self.findings.add(line, "an `unsafe` in sys has a SAFETY comment");
        }
        if INSTRUCTION_SETS.contains(&name) || name.starts_with("EM_") || name == "target_arch" {
            self.instruction_set(name, line, is_test);
        }
    }

    fn instruction_set(&mut self, name: &str, line: usize, is_test: bool) {
        if !self.place.may_name_instruction_set && !is_test {
            self.findings.add(line, format!("no test of the instruction set outside isa: {name}"));
        }
    }

    fn process_exit(&mut self, name: &str, tokens: &Peekable<token_stream::IntoIter>, line: usize, is_test: bool) {
        if name != "process" || self.place.may_print || is_test {
            return;
        }
        let next: Vec<String> = tokens.clone().take(3).map(|token| token.to_string()).collect();
        if next == [":", ":", "exit"] || next == [":", ":", "abort"] {
            self.findings.add(line, format!("only cli and xtask exit: process::{}", next[2]));
        }
    }

    /// Whether a SAFETY comment stands on the line or above the statement or item that the line belongs to.
    fn is_justified(&self, line: usize) -> bool {
        let says_why = |line: &str| {
            let comment = line.split_once("//").map_or("", |(_, comment)| comment);
            comment.contains("SAFETY:") || comment.contains("# Safety")
        };
        let mut upwards = self.lines.iter().take(line).rev().map(|line| line.trim());
        if upwards.next().is_some_and(says_why) {
            return true;
        }
        for above in upwards {
            if above.starts_with("//") {
                if says_why(above) {
                    return true;
                }
            } else if !above.starts_with("#[") && (above.is_empty() || above.ends_with([';', '{', '}', ','])) {
                return false; // the statement before, or the block around
            }
        }
        false
    }
}

/// Takes the `[...]` of an attribute, behind its `#`.
fn next_attribute(tokens: &mut Peekable<token_stream::IntoIter>) -> Option<Group> {
    if matches!(tokens.peek(), Some(TokenTree::Punct(p)) if p.as_char() == '!') {
        tokens.next();
    }
    match tokens.next_if(|token| matches!(token, TokenTree::Group(g) if g.delimiter() == Delimiter::Bracket))? {
        TokenTree::Group(group) => Some(group),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::rules_broken;

    /// The rules broken by a module of a crate with this body.
    fn in_crate(name: &str, body: &str) -> Vec<String> {
        rules_broken(&format!("crates/{name}/src/module.rs"), &format!("//! Doc.\n{body}\n"))
    }

    const NOTHING: [&str; 0] = [];

    #[test]
    fn crates_forbid_unsafe_code() {
        let rule = "1: a crate other than sys starts with #![forbid(unsafe_code)]";
        assert_eq!(rules_broken("crates/isa/src/lib.rs", "//! Doc.\n"), [rule]);
        assert_eq!(rules_broken("crates/cli/src/main.rs", "//! Doc.\n"), [rule]);
        assert_eq!(rules_broken("crates/cli/src/bin/other.rs", "//! Doc.\n"), [rule]);
        assert_eq!(rules_broken("xtask/src/main.rs", "//! Doc.\n"), [rule]);
        assert_eq!(rules_broken("crates/isa/src/lib.rs", "//! Doc.\n#![forbid(unsafe_code)]\n"), NOTHING);
        assert_eq!(rules_broken("crates/sys/src/lib.rs", "//! Doc.\n"), NOTHING);
    }

    #[test]
    fn unsafe_in_sys_is_justified() {
        let rule = ["3: an `unsafe` in sys has a SAFETY comment"];
        assert_eq!(in_crate("sys", "fn f() {\nunsafe { g() }\n}"), rule);
        assert_eq!(in_crate("sys", "// SAFETY: for the line below only\nfn f() { unsafe { g() } }"), NOTHING);
        assert_eq!(in_crate("sys", "fn f() {\n// SAFETY: g is fine\nlet x =\nunsafe { g() };\n}"), NOTHING);
        assert_eq!(in_crate("sys", "fn f() {\n// SAFETY: g is fine\ng();\nunsafe { g() };\n}").len(), 1);
        assert_eq!(in_crate("sys", "/// # Safety\n/// Call it once.\n#[inline]\npub unsafe fn f() {}"), NOTHING);
    }

    #[test]
    fn only_cli_prints_and_exits() {
        let body = "fn f() {\nprintln!();\neprintln!();\nstd::process::exit(1);\n}";
        let rules = [
            "3: only cli and xtask print: println!",
            "4: only cli and xtask print: eprintln!",
            "5: only cli and xtask exit: process::exit",
        ];
        assert_eq!(in_crate("engine", body), rules);
        assert_eq!(in_crate("cli", body), NOTHING);
        assert_eq!(in_crate("engine", &format!("#[cfg(test)]\nmod tests {{\n{body}\n}}")), NOTHING);
        assert_eq!(in_crate("engine", &format!("#[cfg(test)]\nuse a::b;\n{body}")).len(), 3);
        assert_eq!(rules_broken("crates/engine/tests/a.rs", &format!("//! Doc.\n{body}")), NOTHING);
        assert_eq!(in_crate("engine", "// println!()\nconst A: &str = \"println!()\";"), NOTHING);
    }

    #[test]
    fn nothing_is_left_unfinished() {
        for name in super::UNFINISHED {
            assert_eq!(in_crate("cli", &format!("fn f() {{ {name}!() }}")), [format!("2: no {name}!")]);
        }
        assert_eq!(
            in_crate("cli", "#[cfg(test)]\nmod tests {\n#[test]\n#[ignore]\nfn f() {}\n}"),
            ["5: no ignored tests"]
        );
        assert_eq!(in_crate("cli", "#[ignore = \"slow\"]\nfn f() {}"), ["2: no ignored tests"]);
    }

    #[test]
    fn modules_start_with_a_doc() {
        let rule = ["1: a module starts with a `//!` doc"];
        assert_eq!(rules_broken("crates/isa/src/a.rs", "use b::c;\n//! Late.\n"), rule);
        assert_eq!(rules_broken("crates/isa/src/a.rs", ""), rule);
        assert_eq!(rules_broken("crates/isa/src/a.rs", "\n#![allow(x)]\n//! Doc.\n"), NOTHING);
        assert_eq!(rules_broken("testdata/x86_64/corpus/a.rs", "fn main() {}\n"), NOTHING);
    }

    #[test]
    fn the_instruction_set_is_not_tested_outside_isa() {
        for name in ["X86_64", "EM_MIPS"] {
            let body = format!("fn f(x: u8) -> bool {{ x == {name} }}");
            let rule = [format!("2: no test of the instruction set outside isa: {name}")];
            assert_eq!(in_crate("engine", &body), rule);
            assert_eq!(in_crate("cli", &body), rule);
            assert_eq!(in_crate("isa", &body), NOTHING);
        }
        let cfg = "#[cfg(target_arch = \"x86_64\")]\nfn f() {}";
        assert_eq!(in_crate("lancet", cfg), ["2: no test of the instruction set outside isa: target_arch"]);
        assert_eq!(in_crate("sys", cfg), NOTHING);
    }

    #[test]
    fn examples_are_short() {
        let line = "fn f() {}\n";
        let example = |lines: usize| format!("//! Doc.\n\n{}", line.repeat(lines));
        assert_eq!(rules_broken("examples/a.rs", &example(40)), NOTHING);
        let rule = ["1: an example has at most 40 lines of code; this one has 41"];
        assert_eq!(rules_broken("examples/a.rs", &example(41)), rule);
        assert_eq!(rules_broken("crates/lancet/examples/a.rs", &example(41)), rule);
        assert_eq!(rules_broken("crates/lancet/src/a.rs", &example(41)), NOTHING);
    }

    #[test]
    fn bad_rust_is_reported_not_fatal() {
        assert_eq!(in_crate("isa", "fn f() {"), ["2: not valid Rust"]);
    }
}
