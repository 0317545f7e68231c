//! Random bytes never break the decoder, the printer, the analyses or the encoder.

use std::ops::ControlFlow;

use lancet_isa::blackfin::{Disassembler, decode, encode_insn};
use lancet_isa::{DecodeError, Svma, for_elf_machine};

const ROUNDS: usize = 400_000;

/// A generator with a fixed seed (xorshift64), so that a failure comes again.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

#[test]
fn random_bytes_never_panic() {
    let isa = for_elf_machine(106).expect("Blackfin is known");
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    let mut disassembler = Disassembler::new();
    let (mut legal, mut illegal) = (0, 0);
    for round in 0..ROUNDS {
        let mut code = random.next().to_le_bytes();
        // Half of the rounds start a bundle or another 32-bit instruction: those are rare among random words.
        if round % 2 == 0 {
            code[1] |= 0xC0;
        }
        let code = &code[..(random.next() % 9) as usize];
        let at = random.next() as u32;
        let decoded = decode(code, at);
        match disassembler.line(code, at, &|_| None) {
            Ok(line) => assert!(line.text.ends_with([';', '/']) && line.len > 0),
            Err(error) => assert_eq!(error, DecodeError::Truncated { at: Svma(at.into()) }),
        }
        match decoded {
            Ok(insn) => {
                legal += 1;
                let again = encode_insn(&insn).unwrap_or_else(|e| panic!("{code:02x?}: {e}"));
                assert_eq!(decode(&again, at).as_ref(), Ok(&insn), "{code:02x?}");
            }
            Err(_) => illegal += 1,
        }
        let at = Svma(at.into());
        let _ = isa.decode(code, at, &mut |_| ControlFlow::Continue(()));
        isa.values(code, at);
        isa.guard(code, at);
        isa.jump_target(code, at);
        isa.is_padding(code, at);
    }
    assert!(legal > ROUNDS / 10 && illegal > ROUNDS / 10, "{legal} legal, {illegal} illegal");
}
