//! Functions that never return.
//!
//! What stands behind a call that does not come back is other code, or none. The names are those that libraries
//! document; everything else follows from the control flow (see [`super::discover`]).

/// Documented never to return, by the C, POSIX, C++ ABI, unwinder and Rust run-time interfaces.
const NAMES: &[&str] = &[
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
    "err",
    "errx",
    "exit",
    "longjmp",
    "pthread_exit",
    "quick_exit",
    "rust_begin_unwind",
    "siglongjmp",
    "thrd_exit",
    "verr",
    "verrx",
];

/// Mangled C++ functions of the standard library that only throw or terminate.
const PREFIXES: &[&str] =
    &["_ZSt9terminatev", "_ZSt10unexpectedv", "_ZSt17rethrow_exception", "_ZSt25__throw_bad_function_call"];

pub(super) fn is_noreturn_name(name: &str) -> bool {
    NAMES.binary_search(&name).is_ok()
        || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        || is_throw_helper(name)
}

/// `std::__throw_length_error(char const*)` and its kin: `_ZSt<length>__throw_...`.
fn is_throw_helper(name: &str) -> bool {
    name.strip_prefix("_ZSt")
        .is_some_and(|rest| rest.trim_start_matches(|c: char| c.is_ascii_digit()).starts_with("__throw_"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted() {
        assert!(NAMES.is_sorted());
    }

    #[test]
    fn throw_helpers_are_known() {
        assert!(is_noreturn_name("_ZSt20__throw_length_errorPKc"));
        assert!(!is_noreturn_name("_ZSt4endlIcSt11char_traitsIcEE"));
        assert!(is_noreturn_name("exit") && !is_noreturn_name("exitable"));
    }
}
