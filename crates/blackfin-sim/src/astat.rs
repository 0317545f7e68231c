//! The bits of ASTAT.
//!
//! CC is kept apart from the others ([`crate::state::State::cc`]): branches read it all the time, and arithmetic never
//! writes it. AC0 and V exist twice; both copies are always written together.

pub const AZ: u32 = 1 << 0;
pub const AN: u32 = 1 << 1;
pub const CC: u32 = 1 << 5;
pub const AQ: u32 = 1 << 6;
pub const RND_MOD: u32 = 1 << 8;
pub const AC1: u32 = 1 << 13;
pub const VS: u32 = 1 << 25;

/// AC0 and its copy.
pub const AC0: u32 = 1 << 12 | 1 << 2;
/// V and its copy.
pub const V: u32 = 1 << 24 | 1 << 3;

/// AV0 or AV1.
pub const AV: [u32; 2] = [1 << 16, 1 << 18];
/// AV0S or AV1S, the sticky ones.
pub const AVS: [u32; 2] = [1 << 17, 1 << 19];

pub const NZ: u32 = AZ | AN;

/// `mask` if the condition holds.
#[inline(always)]
pub const fn when(condition: bool, mask: u32) -> u32 {
    (condition as u32).wrapping_neg() & mask
}

/// AZ and AN of a 32-bit result.
#[inline(always)]
pub const fn nz(value: u32) -> u32 {
    when(value == 0, AZ) | value >> 31 << 1
}

/// V, and with it the sticky VS.
#[inline(always)]
pub const fn overflow(happened: bool) -> u32 {
    when(happened, V | VS)
}
