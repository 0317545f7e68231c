//! Functions that are known never to return by their names.
//!
//! Some names belong to the language and its run-time system, so whoever defines such a function has to keep to what is
//! documented. Other names are only those of some library, and a program may have a function of its own by the same name
//! that does return: they count where a slot leads to another object. A library calls its own functions through slots,
//! too. There the name tells nothing by itself; but if the function that the library has is found not to return, then both
//! agree, and whatever takes its place at run time will not return either.

use lancet_isa::Svma;

use crate::image::{Image, RelocKind};

/// Documented never to return, by the C, POSIX, C++ ABI, unwinder and Rust run-time interfaces, or reserved for the C
/// library.
const RESERVED: &[&str] = &[
    "_Exit",
    "_Unwind_Resume",
    "__assert",
    "__assert_fail",
    "__assert_perror_fail",
    "__chk_fail",
    "__cxa_bad_cast",
    "__cxa_bad_typeid",
    "__cxa_call_terminate",
    "__cxa_call_unexpected",
    "__cxa_deleted_virtual",
    "__cxa_pure_virtual",
    "__cxa_rethrow",
    "__cxa_throw",
    "__cxa_throw_bad_array_length",
    "__cxa_throw_bad_array_new_length",
    "__fortify_fail",
    "__libc_fatal",
    "__longjmp_chk",
    "__rust_start_panic",
    "__stack_chk_fail",
    "_exit",
    "_longjmp",
    "abort",
    "exit",
    "longjmp",
    "pthread_exit",
    "quick_exit",
    "rust_begin_unwind",
    "siglongjmp",
    "thrd_exit",
];

/// Documented never to return by the headers of libraries that many programs share: BSD's functions in the C library, glib,
/// libiberty, libpng, Perl, Python, systemd, Tcl.
const OF_LIBRARIES: &[&str] = &[
    "Perl_croak",
    "Perl_croak_memory_wrap",
    "Perl_croak_no_modify",
    "Perl_croak_nocontext",
    "Perl_croak_xs_usage",
    "Py_Exit",
    "Py_FatalError",
    "Tcl_Exit",
    "Tcl_Panic",
    "_Py_FatalErrorFunc",
    "err",
    "errx",
    "g_abort",
    "g_assertion_message_expr",
    "log_assert_failed",
    "log_assert_failed_unreachable",
    "png_chunk_error",
    "png_error",
    "png_longjmp",
    "verr",
    "verrx",
    "xexit",
    "xmalloc_failed",
];

/// Mangled C++ functions of the standard library that only throw or terminate.
const PREFIXES: &[&str] =
    &["_ZSt9terminatev", "_ZSt10unexpectedv", "_ZSt17rethrow_exception", "_ZSt25__throw_bad_function_call"];

/// Does a function of this name never return, whoever defines it?
pub(super) fn is_reserved(name: &str) -> bool {
    RESERVED.binary_search(&name).is_ok()
        || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        || is_throw_helper(name)
}

/// `std::__throw_length_error(char const*)` and its kin: `_ZSt<length>__throw_...`.
fn is_throw_helper(name: &str) -> bool {
    name.strip_prefix("_ZSt")
        .is_some_and(|rest| rest.trim_start_matches(|c: char| c.is_ascii_digit()).starts_with("__throw_"))
}

/// What the name of a slot's function tells.
enum Named {
    /// It never returns.
    Never,
    /// It does not if this function of the image does not.
    AsOwn(Svma),
    Nothing,
}

impl Named {
    fn of(image: &Image, slot: Svma) -> Named {
        let Some(name) = image.slot_name(slot) else { return Named::Nothing };
        if is_reserved(name) {
            return Named::Never;
        }
        if OF_LIBRARIES.binary_search(&name).is_err() {
            return Named::Nothing;
        }
        match image.relocation_at(slot).map(|reloc| reloc.kind) {
            Some(RelocKind::Symbol { index, .. }) => {
                image.dynamic_symbol(index).and_then(|symbol| symbol.svma).map_or(Named::Never, Named::AsOwn)
            }
            _ => Named::Nothing,
        }
    }
}

/// The slots whose names tell something.
#[derive(Debug, Default)]
pub(super) struct Slots {
    /// Sorted.
    never: Vec<Svma>,
    /// Slots with the functions of the image that they hold by themselves, sorted.
    own: Vec<(Svma, Svma)>,
}

impl Slots {
    pub(super) fn find(image: &Image) -> Slots {
        let mut slots = Slots::default();
        for slot in image.relocations().iter().map(|reloc| reloc.place) {
            match Named::of(image, slot) {
                Named::Never => slots.never.push(slot),
                Named::AsOwn(own) => slots.own.push((slot, own)),
                Named::Nothing => {}
            }
        }
        slots.never.sort_unstable();
        slots.own.sort_unstable();
        slots
    }

    /// Does what this slot of an image leads to never return?
    pub(super) fn is_never(image: &Image, slot: Svma) -> bool {
        matches!(Named::of(image, slot), Named::Never)
    }

    pub(super) fn never_return(&self, slot: Svma) -> bool {
        self.never.binary_search(&slot).is_ok()
    }

    /// The function of the image that tells whether what this slot leads to returns.
    pub(super) fn own(&self, slot: Svma) -> Option<Svma> {
        let i = self.own.binary_search_by_key(&slot, |(slot, _)| *slot).ok()?;
        Some(self.own[i].1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_are_sorted() {
        assert!(RESERVED.is_sorted() && OF_LIBRARIES.is_sorted());
    }

    #[test]
    fn throw_helpers_are_known() {
        assert!(is_reserved("_ZSt20__throw_length_errorPKc"));
        assert!(!is_reserved("_ZSt4endlIcSt11char_traitsIcEE"));
        assert!(is_reserved("exit") && !is_reserved("exitable"));
    }

    #[test]
    fn a_program_may_have_functions_by_names_of_libraries() {
        assert!(!is_reserved("xexit") && !is_reserved("err"));
    }
}
