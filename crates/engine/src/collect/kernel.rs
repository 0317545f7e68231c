//! Names of the kernel's functions, from `/proc/kallsyms`.
//!
//! Without privileges the kernel shows all addresses as zero; then everything is just `[kernel]`.

use std::fs;

#[derive(Debug, Default)]
pub struct KernelSymbols {
    /// By address.
    symbols: Vec<(u64, String)>,
}

impl KernelSymbols {
    pub fn read() -> KernelSymbols {
        let text = fs::read_to_string("/proc/kallsyms").unwrap_or_default();
        let mut symbols: Vec<(u64, String)> = text.lines().filter_map(symbol).collect();
        symbols.sort_by_key(|(at, _)| *at);
        KernelSymbols { symbols }
    }

    /// The function that an address is in.
    pub fn name(&self, at: u64) -> Option<&str> {
        self.symbol_before(at).map(|(_, name)| name.as_str())
    }

    /// Where that function starts.
    pub fn start(&self, at: u64) -> Option<u64> {
        self.symbol_before(at).map(|(start, _)| *start)
    }

    fn symbol_before(&self, at: u64) -> Option<&(u64, String)> {
        let after = self.symbols.partition_point(|(start, _)| *start <= at);
        self.symbols[..after].last()
    }
}

/// `address kind name [module]`; only code.
fn symbol(line: &str) -> Option<(u64, String)> {
    let mut fields = line.split_whitespace();
    let at = u64::from_str_radix(fields.next()?, 16).ok().filter(|at| *at != 0)?;
    let is_code = matches!(fields.next()?, "t" | "T" | "w" | "W");
    let name = fields.next()?;
    is_code.then(|| (at, name.to_owned()))
}
