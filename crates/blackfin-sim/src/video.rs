//! The byte operations of the four video units.
//!
//! Their operands are four bytes out of a pair of registers, starting at the byte that the low bits of I0 (first
//! operand) and I1 (second) name. The `(R)` forms take the registers of the pair in the other order. In a bundle they
//! also switch off the alignment check of loads ([`skips_alignment`]).

use crate::state::{State, pack};
use lancet_isa::blackfin::{Acc, Dreg, Half, Op};

/// Do loads in the same bundle ignore the low address bits?
pub fn skips_alignment(op: &Op) -> bool {
    matches!(
        op,
        Op::Disalgnexcpt
            | Op::Saa { .. }
            | Op::ByteAverage { .. }
            | Op::ByteAverage4 { .. }
            | Op::ByteAddClip { .. }
            | Op::ByteAdd { .. }
            | Op::BytePack { .. }
            | Op::ByteUnpack { .. }
    )
}

/// Which index register chooses the first byte.
#[derive(Clone, Copy)]
enum By {
    I0,
    I1,
}

fn bytes(state: &State, low: Dreg, by: By, reversed: bool) -> [u8; 4] {
    let (first, second) = if reversed { (low.next(), low) } else { (low, low.next()) };
    let pair = u64::from(state.d(second)) << 32 | u64::from(state.d(first));
    let start = state.r[16 + by as usize] & 3;
    ((pair >> (8 * start)) as u32).to_le_bytes()
}

/// Four bytes combined one by one.
fn zip(a: [u8; 4], b: [u8; 4], combine: impl Fn(u16, u16) -> u16) -> [u16; 4] {
    std::array::from_fn(|i| combine(a[i].into(), b[i].into()))
}

pub fn run(state: &mut State, op: &Op) {
    match *op {
        Op::Saa { src0, src1, reversed } => {
            let (a, b) = (bytes(state, src0, By::I0, reversed), bytes(state, src1, By::I1, reversed));
            let differences = zip(a, b, u16::abs_diff);
            for (acc, [low, high]) in
                [(Acc::A0, [differences[0], differences[1]]), (Acc::A1, [differences[2], differences[3]])]
            {
                let old = state.a(acc);
                let sum = pack(((old >> 16) as u16).saturating_add(high), (old as u16).saturating_add(low));
                state.set_a(acc, i64::from(sum));
            }
        }
        Op::ByteAverage { dst, src0, src1, truncate, reversed } => {
            let (a, b) = (bytes(state, src0, By::I0, reversed), bytes(state, src1, By::I1, reversed));
            let average = zip(a, b, |x, y| (x + y + u16::from(!truncate)) >> 1).map(|x| x as u8);
            state.set_d(dst, u32::from_le_bytes(average));
        }
        Op::ByteAverage4 { dst, src0, src1, truncate, half, reversed } => {
            let (a, b) = (bytes(state, src0, By::I0, reversed), bytes(state, src1, By::I0, reversed));
            let sums = zip(a, b, |x, y| x + y);
            let round = if truncate { 0 } else { 2 };
            let average = |i: usize| (sums[i] + sums[i + 1] + round) >> 2;
            state.set_d(dst, pack(average(2), average(0)) << (8 * half as u32));
        }
        Op::ByteAddClip { dst, src0, src1, half, reversed } => {
            let (a, b) = (bytes(state, src0, By::I0, reversed), bytes(state, src1, By::I1, reversed));
            // Two 16-bit numbers plus the odd or the even bytes.
            let odd = usize::from(half == Half::Lo);
            let clip = |i: usize| {
                let number = i16::from_le_bytes([a[i], a[i + 1]]);
                (i32::from(number) + i32::from(b[i + odd])).clamp(0, 255) as u16
            };
            state.set_d(dst, pack(clip(2), clip(0)) << (8 * half as u32));
        }
        Op::ByteAdd { sub, dst1, dst0, src0, src1, reversed } => {
            let (a, b) = (bytes(state, src0, By::I0, reversed), bytes(state, src1, By::I1, reversed));
            let r = zip(a, b, |x, y| if sub { x.wrapping_sub(y) } else { x + y });
            state.set_d(dst0, pack(r[1], r[0]));
            state.set_d(dst1, pack(r[3], r[2]));
        }
        Op::BytePack { dst, src0, src1 } => {
            let (a, b) = (state.d(src0).to_le_bytes(), state.d(src1).to_le_bytes());
            state.set_d(dst, u32::from_le_bytes([a[0], a[2], b[0], b[2]]));
        }
        Op::ByteUnpack { dst1, dst0, src, reversed } => {
            let b = bytes(state, src, By::I0, reversed).map(u16::from);
            state.set_d(dst0, pack(b[1], b[0]));
            state.set_d(dst1, pack(b[3], b[2]));
        }
        _ => {}
    }
}
