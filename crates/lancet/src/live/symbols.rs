//! Addresses of a process's symbols.

use lancet_engine::image::{Binding, RelocKind, Symbol, SymbolKind};
use lancet_engine::sink::live::Memory;
use lancet_isa::{Avma, Svma};

use super::Mapped;

/// The address of a symbol: global ones first, objects in order of address.
pub(super) fn address_of(mapped: &[Mapped], memory: &Memory, wanted: &str) -> Option<Avma> {
    let mut local = None;
    for object in mapped {
        let is_wanted = |symbol: &&Symbol| {
            !matches!(symbol.kind, SymbolKind::Section | SymbolKind::Tls) && object.image.symbol_name(symbol) == wanted
        };
        for symbol in object.image.symbols().iter().filter(is_wanted) {
            let at = Avma(symbol.svma.0.wrapping_add(object.bias));
            match (symbol.kind, symbol.binding) {
                (SymbolKind::IFunc, _) => return picked(mapped, memory, wanted),
                (_, Binding::Local) => local = local.or(Some(at)),
                _ => return Some(at),
            }
        }
    }
    local
}

/// What the loader bound an indirect function to, if it did so already for anybody.
fn picked(mapped: &[Mapped], memory: &Memory, wanted: &str) -> Option<Avma> {
    for object in mapped {
        for reloc in object.image.relocations() {
            let RelocKind::Symbol { index, addend: 0 } = reloc.kind else { continue };
            if object.image.dynamic_symbol(index).is_none_or(|symbol| symbol.name != wanted) {
                continue;
            }
            let slot = memory.read(Avma(reloc.place.0.wrapping_add(object.bias)), 8).ok()?;
            let value = u64::from_le_bytes(slot.try_into().ok()?);
            // One that is not bound yet leads back into its own object.
            if !object.image.is_code(Svma(value.wrapping_sub(object.bias))) && value != 0 {
                return Some(Avma(value));
            }
        }
    }
    None
}
