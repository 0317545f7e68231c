//! Instructions to bytes.
//!
//! Bits that mean nothing to an operation become what the GNU assembler makes of them, mostly 0. Every encoding is
//! decoded again and compared, so what comes out is what was asked for: an operand that does not fit, a pair of
//! registers with no path between them, a target out of reach are errors and not other instructions.

mod dsp;
mod half;
mod wide;

use super::decode::{self, is_wide};
use super::insn::{BfInsn, Op};

/// The bytes of one instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Encoded {
    bytes: [u8; 8],
    len: u8,
}

impl std::ops::Deref for Encoded {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    #[error("{target:#x} is out of reach of the instruction at {at:#x}")]
    OutOfReach { at: u32, target: u32 },
    #[error("there is no instruction for {op:?} at {at:#x}")]
    NoEncoding { at: u32, op: Op },
}

/// Bit 11 of the first word of a bundle.
const BUNDLE: u32 = 0x0800_0000;

/// An instruction word.
#[derive(Clone, Copy)]
enum Word {
    Half(u16),
    Wide(u32),
}

/// The bytes of one operation that starts at `at`.
pub fn encode(op: &Op, at: u32) -> Result<Encoded, EncodeError> {
    let mut encoded = Encoded { bytes: [0; 8], len: 0 };
    match word(op, at)? {
        Word::Half(word) => encoded.push(word),
        Word::Wide(word) => encoded.push_wide(word),
    }
    Ok(encoded)
}

/// The bytes of an instruction or a bundle.
pub fn encode_insn(insn: &BfInsn) -> Result<Encoded, EncodeError> {
    let at = insn.at;
    let Some(slots) = insn.slots else {
        return encode(&insn.op, at);
    };
    let no_encoding = |op: Op| EncodeError::NoEncoding { at, op };
    let mut encoded = Encoded { bytes: [0; 8], len: 0 };
    match word(&insn.op, at)? {
        // Arithmetic has the bit for bundles; other 32-bit words use it for something else.
        Word::Wide(word) if word >> 28 == 0xC => encoded.push_wide(word | BUNDLE),
        _ => return Err(no_encoding(insn.op)),
    }
    for (op, offset) in slots.into_iter().zip([4, 6]) {
        match word(&op, at.wrapping_add(offset))? {
            Word::Half(word) if op.in_parallel() => encoded.push(word),
            _ => return Err(no_encoding(op)),
        }
    }
    Ok(encoded)
}

impl Encoded {
    fn push(&mut self, word: u16) {
        let len = usize::from(self.len);
        self.bytes[len..len + 2].copy_from_slice(&word.to_le_bytes());
        self.len += 2;
    }

    fn push_wide(&mut self, word: u32) {
        self.push((word >> 16) as u16);
        self.push(word as u16);
    }
}

/// The word for `op`, checked.
fn word(op: &Op, at: u32) -> Result<Word, EncodeError> {
    let word = half::word(op, at).or_else(|| wide::word(op, at)).or_else(|| dsp::word(op));
    let back = match word {
        Some(Word::Half(word)) if !is_wide(word) => decode::half_op(word, at),
        Some(Word::Wide(word)) if is_wide((word >> 16) as u16) => decode::wide_op(word, at),
        _ => None,
    };
    match word {
        Some(word) if back == Some(*op) => Ok(word),
        _ => Err(match *op {
            Op::Branch { target, .. }
            | Op::JumpShort { target }
            | Op::JumpLong { target }
            | Op::Call { target }
            | Op::LoopSetup { last: target, .. } => EncodeError::OutOfReach { at, target },
            op => EncodeError::NoEncoding { at, op },
        }),
    }
}

/// How far `target` is from `at`, in 16-bit units. An odd distance comes back wrong from the decoder.
fn distance(target: u32, at: u32) -> u32 {
    (target.wrapping_sub(at) as i32 >> 1) as u32
}
