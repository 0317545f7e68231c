sysroot=$(rustc --print sysroot)
export LD_LIBRARY_PATH="$BIN:$sysroot/lib"
cat > program.rs <<'END'
use std::collections::BTreeMap;
use std::fmt;

#[derive(Clone, Debug, PartialEq)]
enum Token { Number(f64), Name(String), Sign(char) }

#[derive(Debug)]
struct Unknown(char);

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { write!(f, "{:?} is unknown", self.0) }
}

trait Count { fn count(&self) -> usize; }
impl<T: Clone> Count for [T] { fn count(&self) -> usize { self.iter().cloned().map(|_| 1).sum() } }

fn tokens(text: &str) -> Result<Vec<Token>, Unknown> {
    let mut found = Vec::new();
    for word in text.split_whitespace() {
        found.push(match word.chars().next() {
            Some('0'..='9') => Token::Number(word.parse().unwrap_or(0.0)),
            Some(c) if c.is_alphabetic() => Token::Name(word.to_owned()),
            Some(c @ ('+' | '-' | '*' | '/')) => Token::Sign(c),
            Some(c) => return Err(Unknown(c)),
            None => continue,
        });
    }
    Ok(found)
}

fn main() {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for text in ["1 + x * 3.5", "a / b", "?"] {
        match tokens(text) {
            Ok(found) => *seen.entry(format!("{found:?}")).or_default() += found.as_slice().count(),
            Err(unknown) => println!("{unknown}"),
        }
    }
    println!("{seen:?}");
}
END
for level in 0 1 2 3; do
    "$sysroot/bin/rustc" --sysroot "$sysroot" --edition 2021 -Copt-level=$level --emit=asm,obj,mir,link program.rs
    sha256sum program.s program.o program.mir
    ./program
done
sed 's/found.push/found.pull/; s/Err(Unknown(c))/Err(c)/' program.rs > wrong.rs
if "$sysroot/bin/rustc" --sysroot "$sysroot" --edition 2021 wrong.rs; then exit 1; fi
