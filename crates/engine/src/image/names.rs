//! Names for people: C++ and Rust symbols as they stand in the source.

use std::borrow::Cow;
use std::fmt;

use cpp_demangle::DemangleOptions;

/// A hostile symbol can ask for exponentially long text; real ones stay far below.
const LONGEST_NAME: usize = 16 * 1024;

/// Demangles a C++ or Rust symbol. Any other name is given back as it is.
pub fn demangle(name: &str) -> Cow<'_, str> {
    demangle_as(name, &DemangleOptions::new())
}

/// As [`demangle`], without a C++ function's parameters and result.
pub fn demangle_short(name: &str) -> Cow<'_, str> {
    demangle_as(name, &DemangleOptions::new().no_params().no_return_type())
}

fn demangle_as<'a>(name: &'a str, options: &DemangleOptions) -> Cow<'a, str> {
    if !name.starts_with(['_', '?']) {
        return Cow::Borrowed(name);
    }
    let mut text = Bounded(String::new());
    let done = if let Ok(rust) = rustc_demangle::try_demangle(name) {
        // The alternate form leaves out the hash.
        fmt::write(&mut text, format_args!("{rust:#}")).is_ok()
    } else {
        let parsed = cpp_demangle::Symbol::new(name);
        parsed.is_ok_and(|cpp| cpp.structured_demangle(&mut text, options).is_ok())
    };
    if done { Cow::Owned(text.0) } else { Cow::Borrowed(name) }
}

struct Bounded(String);

impl fmt::Write for Bounded {
    fn write_str(&mut self, piece: &str) -> fmt::Result {
        if self.0.len() + piece.len() > LONGEST_NAME {
            return Err(fmt::Error);
        }
        self.0.push_str(piece);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{demangle, demangle_short};

    #[test]
    fn names_of_three_languages() {
        assert_eq!(demangle("main"), "main");
        assert_eq!(demangle("_start"), "_start");
        assert_eq!(
            demangle("_ZNSt6vectorIiSaIiEE9push_backERKi"),
            "std::vector<int, std::allocator<int> >::push_back(int const&)"
        );
        assert_eq!(
            demangle_short("_ZNSt6vectorIiSaIiEE9push_backERKi"),
            "std::vector<int, std::allocator<int> >::push_back"
        );
        assert_eq!(demangle_short("_ZN6shapes7largestIiEET_PKS1_i"), "shapes::largest<int>");
        assert_eq!(demangle("_ZN4core3fmt5write17h0123456789abcdefE"), "core::fmt::write");
        assert_eq!(demangle("_RNvCskwGfYPst2Cb_3foo16example_function"), "foo::example_function");
    }

    #[test]
    fn the_parts_that_compilers_split_off_keep_their_mark() {
        assert_eq!(demangle("_Z3fooi.cold"), "foo(int) [clone .cold]");
        assert_eq!(demangle("_Z3fooi.constprop.0"), "foo(int) [clone .constprop.0]");
    }

    /// Each argument is a pair of the one before it, so the text doubles with each.
    fn pairs(levels: usize) -> String {
        const DIGITS: &[u8] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
        let mut name = "_Z1fSt4pairIiiE".to_owned();
        for digit in &DIGITS[..levels] {
            let last = format!("S{}_", char::from(*digit));
            name.push_str(&format!("S_I{last}{last}E"));
        }
        name
    }

    #[test]
    fn a_name_that_explodes_stays_as_it_is() {
        assert!(demangle(&pairs(4)).starts_with("f(std::pair<int, int>, std::pair<std::pair<int, int>, "));
        assert_eq!(demangle(&pairs(30)), pairs(30));
    }
}
