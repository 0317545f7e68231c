//! Writes large C files of functions with random control flow, the same for the same seed.
//!
//! Hand-written samples show the shapes we thought of; random nesting of loops, switches, early returns and calls
//! shows the combinations. Every function spends from a common store of fuel, so the program ends, and all effects go
//! through the trace variable of `corpus.h`, so nothing is folded away.

const FUNCTIONS: usize = 200;
const MAX_DEPTH: usize = 3;

struct Generator {
    random: Random,
    text: String,
    indent: usize,
    /// Which file this is: the names of its functions carry it.
    file: usize,
}

/// SplitMix64: small, and the same on every machine.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }
}

/// The `file`-th generated C file. The first one (0) holds `main`.
pub(super) fn c_file(file: usize) -> String {
    let random = Random(0x1a5c_e700 + file as u64);
    let mut generator = Generator { random, text: String::new(), indent: 0, file };
    generator.whole_file();
    generator.text
}

pub(super) const FILES: usize = 2;

impl Generator {
    fn line(&mut self, line: impl AsRef<str>) {
        let line = line.as_ref();
        if line.starts_with('}') {
            self.indent = self.indent.saturating_sub(1);
        }
        for _ in 0..self.indent {
            self.text.push_str("    ");
        }
        self.text.push_str(line);
        self.text.push('\n');
        if line.ends_with('{') {
            self.indent += 1;
        }
    }

    fn whole_file(&mut self) {
        self.line("#include <stdlib.h>");
        self.line("#include \"corpus.h\"");
        self.line("extern long fuel;");
        for file in 0..FILES {
            for n in 0..FUNCTIONS {
                self.line(format!("long f{file}_{n}(long a, long b);"));
            }
        }
        self.line("COLD static void odd(long x) { DO(x); if (x == 0x7fffffffff) abort(); }");
        for n in 0..FUNCTIONS {
            self.function(n);
        }
        if self.file == 0 {
            self.line("long fuel = 0;");
            self.line("int main(void) {");
            for n in 0..FUNCTIONS {
                self.line(format!("fuel = 200; DO(f0_{n}({n}, {}));", n * 7 % 11));
            }
            self.line("return report(\"generated\");");
            self.line("}");
        }
    }

    fn function(&mut self, n: usize) {
        self.line(format!("NOINLINE long f{}_{n}(long a, long b) {{", self.file));
        self.line("long c = a ^ 5, d = b + 3;");
        self.line("if (--fuel < 0) return a;");
        let statements = 1 + self.random.below(4);
        for _ in 0..statements {
            self.statement(0, false);
        }
        match self.random.below(4) {
            0 => {
                let call = self.call();
                self.line(format!("return {call};"));
            }
            _ => self.line("return a + b + c + d;"),
        }
        self.line("}");
    }

    fn variable(&mut self) -> char {
        [b'a', b'b', b'c', b'd'][self.random.below(4)] as char
    }

    fn call(&mut self) -> String {
        let (file, n) = (self.random.below(FILES), self.random.below(FUNCTIONS));
        let (x, y) = (self.variable(), self.variable());
        format!("f{file}_{n}({x}, {y})")
    }

    fn condition(&mut self) -> String {
        let (x, y, k) = (self.variable(), self.variable(), self.random.below(40));
        match self.random.below(6) {
            0 => format!("{x} > {k}"),
            1 => format!("{x} & {}", 1 << self.random.below(5)),
            2 => format!("{x} < {y}"),
            3 => format!("(unsigned char){x} == {k}"),
            4 => format!("{x} > {k} && {y} != 3"),
            _ => format!("{x} == {k} || {y} < -{k}"),
        }
    }

    fn block(&mut self, depth: usize, in_loop: bool) {
        for _ in 0..1 + self.random.below(2) {
            self.statement(depth + 1, in_loop);
        }
    }

    fn statement(&mut self, depth: usize, in_loop: bool) {
        let (x, y) = (self.variable(), self.variable());
        let simple_only = depth >= MAX_DEPTH;
        match self.random.below(if simple_only { 5 } else { 13 }) {
            0 => self.line(format!("{x} += DO({y});")),
            1 => self.line(format!("{x} = ({x} << 3) - {y}; DO({x});")),
            2 => self.line(format!("DO({x} ^ {y});")),
            3 => {
                let call = self.call();
                self.line(format!("{x} ^= {call};"));
            }
            4 if in_loop => {
                let (condition, leave) = (self.condition(), if self.random.one_in(2) { "break" } else { "continue" });
                self.line(format!("if ({condition}) {leave};"));
            }
            4 => {
                let condition = self.condition();
                self.line(format!("if ({condition}) return DO({x});"));
            }
            5..=7 => self.if_else(depth, in_loop),
            8 | 9 => self.loop_statement(depth),
            10 | 11 => self.switch(depth),
            _ => {
                let k = self.random.below(100_000);
                self.line(format!("if (__builtin_expect({x} == {k}, 0)) {{"));
                self.line(format!("odd({x}); odd({y}); {y} = {k};"));
                self.line("}");
            }
        }
    }

    fn if_else(&mut self, depth: usize, in_loop: bool) {
        let condition = self.condition();
        self.line(format!("if ({condition}) {{"));
        self.block(depth, in_loop);
        if self.random.one_in(2) {
            self.line("}");
            self.line("else {");
            self.block(depth, in_loop);
        }
        self.line("}");
    }

    fn loop_statement(&mut self, depth: usize) {
        let (i, times) = (format!("i{depth}_{}", self.text.len()), 1 + self.random.below(6));
        match self.random.below(3) {
            0 => self.line(format!("for (int {i} = 0; {i} < {times}; {i}++) {{")),
            1 => self.line(format!("for (int {i} = {times}; {i}-- > 0 && fuel > 0;) {{")),
            _ => {
                let x = self.variable();
                self.line(format!("for (long {i} = {x} & 7; {i} > 0; {i} -= 2) {{"));
            }
        }
        self.block(depth, true);
        self.line("}");
    }

    /// A switch of random type, base, density and bodies. It always has enough cases to want a table.
    fn switch(&mut self, depth: usize) {
        let x = self.variable();
        let value = match self.random.below(7) {
            0 => format!("(int){x}"),
            1 => format!("(unsigned char){x}"),
            2 => format!("(short)({x} + {})", self.random.below(10)),
            3 => format!("{x} & {}", [7, 15, 31][self.random.below(3)]),
            4 => format!("(unsigned){x} % {}", 6 + self.random.below(20)),
            5 => format!("(signed char){x}"),
            _ => x.to_string(),
        };
        let base = match self.random.below(4) {
            0 => 0,
            1 => self.random.below(100) as i64,
            2 => -(self.random.below(20) as i64),
            _ => 1,
        };
        self.line(format!("switch ({value}) {{"));
        let spread = if self.random.one_in(6) { 40 } else { 10 };
        let cases = 5 + self.random.below(spread);
        let mut label = base;
        for _ in 0..cases {
            self.line(format!("case {label}:"));
            label += if self.random.one_in(5) { 2 } else { 1 };
            match self.random.below(20) {
                0..=2 => continue, // shares the next body
                3 => self.block(depth.max(1), false),
                n => self.line(format!("{} += DO({label} * {n});", ['a', 'b', 'c', 'd'][n % 4])),
            }
            match self.random.below(10) {
                0 => self.line("return a - d;"),
                1 => {} // falls through
                _ => self.line("break;"),
            }
        }
        match self.random.below(3) {
            0 => self.line("break;"),
            1 => self.line("default: DO(a);"),
            _ => self.line("default: b = DO(b); return c;"),
        }
        self.line("}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_file_and_another_file_differs() {
        assert_eq!(c_file(0), c_file(0));
        assert_ne!(c_file(0), c_file(1));
    }

    #[test]
    fn braces_balance() {
        for file in 0..FILES {
            let text = c_file(file);
            assert_eq!(text.matches('{').count(), text.matches('}').count());
        }
    }
}
