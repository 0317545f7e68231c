//! Instructions as text, in either syntax.

use iced_x86::{
    Formatter, FormatterOptions, GasFormatter, Instruction, IntelFormatter, Register, SymbolResolver, SymbolResult,
};

use crate::{Svma, Syntax};

/// Lends the caller's naming function to iced for the duration of one instruction.
struct Names(Vec<(u64, String)>);

impl SymbolResolver for Names {
    fn symbol(&mut self, _: &Instruction, _: u32, _: Option<u32>, address: u64, _: u32) -> Option<SymbolResult<'_>> {
        let (at, name) = self.0.iter().find(|(at, _)| *at == address)?;
        Some(SymbolResult::with_str(*at, name))
    }
}

pub(super) fn format(insn: &Instruction, syntax: Syntax, name: &dyn Fn(Svma) -> Option<String>) -> String {
    // iced keeps the resolver, so it cannot borrow `name`: ask for the two addresses that can be named.
    let mut known = Vec::new();
    for at in [insn.near_branch_target(), fixed_address(insn).unwrap_or(0)] {
        if at != 0 {
            known.extend(name(Svma(at)).map(|text| (at, text)));
        }
    }
    let names: Option<Box<dyn SymbolResolver>> = if known.is_empty() { None } else { Some(Box::new(Names(known))) };
    let mut out = String::new();
    match syntax {
        Syntax::Gnu => {
            let mut formatter = GasFormatter::with_options(names, None);
            common(formatter.options_mut());
            formatter.format(insn, &mut out);
        }
        Syntax::Vendor => {
            let mut formatter = IntelFormatter::with_options(names, None);
            common(formatter.options_mut());
            formatter.format(insn, &mut out);
        }
    }
    out
}

/// The address of a memory operand, if no register but the instruction pointer has a part in it.
fn fixed_address(insn: &Instruction) -> Option<u64> {
    let absolute =
        insn.memory_base() == Register::None && !matches!(insn.memory_segment(), Register::FS | Register::GS);
    (absolute || insn.is_ip_rel_memory_operand()).then(|| insn.memory_displacement64())
}

fn common(options: &mut FormatterOptions) {
    options.set_hex_prefix("0x");
    options.set_hex_suffix("");
    options.set_uppercase_hex(false);
    options.set_small_hex_numbers_in_decimal(true);
    options.set_space_after_operand_separator(true);
    options.set_branch_leading_zeros(false);
    options.set_rip_relative_addresses(false);
    options.set_first_operand_char_index(8);
}
