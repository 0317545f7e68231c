//! The kernel's records, parsed.
//!
//! What a sample holds follows from what [`lancet_sys::perf`] asks for, in the order that `perf_event_open(2)` gives.

use lancet_sys::perf::Record;

const MMAP2: u32 = 10;
const COMM: u32 = 3;
const EXIT: u32 = 4;
const FORK: u32 = 7;
const LOST: u32 = 2;
const LOST_SAMPLES: u32 = 13;
const SAMPLE: u32 = 9;

const MISC_MODE: u16 = 7;
const MODE_KERNEL: u16 = 1;
const MISC_COMM_EXEC: u16 = 1 << 13;
/// Marks in a call chain that are no addresses.
const FIRST_MARK: u64 = 0_u64.wrapping_sub(4095);
const PROT_EXEC: u32 = 4;
/// Thread, time and CPU stand at the end of every record that is no sample.
const TIME_FROM_END: usize = 16;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Parsed<'a> {
    Sample(RawSample<'a>),
    Mapped { pid: u32, start: u64, len: u64, offset: u64, path: &'a [u8] },
    Named { pid: u32, tid: u32, exec: bool, name: &'a [u8] },
    Forked { pid: u32, parent: u32 },
    Exited { pid: u32, tid: u32 },
    Lost(u64),
    Other,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct RawSample<'a> {
    pub ip: u64,
    pub pid: u32,
    pub tid: u32,
    pub time: u64,
    pub period: u64,
    pub in_kernel: bool,
    /// The kernel's part of the chain, innermost first, as words.
    pub kernel_chain: &'a [[u8; 8]],
    pub user: Option<UserState<'a>>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct UserState<'a> {
    pub ip: u64,
    pub sp: u64,
    pub bp: u64,
    /// Memory from `sp` on.
    pub stack: &'a [u8],
}

/// When it happened, for sorting.
pub(super) fn time_of(record: &Record<'_>) -> u64 {
    let at = match record.kind {
        SAMPLE => Some(16),
        _ => record.body.len().checked_sub(TIME_FROM_END),
    };
    at.and_then(|at| record.body.get(at..at + 8))
        .map_or(0, |word| u64::from_ne_bytes(word.try_into().unwrap_or_default()))
}

pub(super) fn parse<'a>(record: &Record<'a>) -> Parsed<'a> {
    let mut fields = Fields(record.body);
    let parsed = match record.kind {
        SAMPLE => sample(&mut fields, record.misc).map(Parsed::Sample),
        MMAP2 => mapped(&mut fields),
        COMM => named(&mut fields, record.misc & MISC_COMM_EXEC != 0),
        FORK => forked(&mut fields),
        EXIT => forked(&mut fields).map(|event| match event {
            Parsed::Forked { pid, .. } => Parsed::Exited { pid, tid: word32(record.body, 8) },
            other => other,
        }),
        LOST => fields.skip(8).and_then(|()| fields.word()).map(Parsed::Lost),
        LOST_SAMPLES => fields.word().map(Parsed::Lost),
        _ => None,
    };
    parsed.unwrap_or(Parsed::Other)
}

fn sample<'a>(fields: &mut Fields<'a>, misc: u16) -> Option<RawSample<'a>> {
    let ip = fields.word()?;
    let (pid, tid) = fields.halves()?;
    let time = fields.word()?;
    fields.skip(8)?;
    let period = fields.word()?;
    let depth = usize::try_from(fields.word()?).ok()?;
    let chain = fields.take(depth.checked_mul(8)?)?.as_chunks::<8>().0;
    let user = match fields.word()? {
        0 => None,
        _ => {
            let (bp, sp, ip) = (fields.word()?, fields.word()?, fields.word()?);
            let size = usize::try_from(fields.word()?).ok()?;
            let stack = fields.take(size)?;
            let valid = if size == 0 { 0 } else { usize::try_from(fields.word()?).ok()? };
            Some(UserState { ip, sp, bp, stack: stack.get(..valid).unwrap_or(stack) })
        }
    };
    let in_kernel = misc & MISC_MODE == MODE_KERNEL;
    Some(RawSample { ip, pid, tid, time, period, in_kernel, kernel_chain: chain, user })
}

impl RawSample<'_> {
    /// Kernel addresses, innermost first.
    pub fn kernel_addresses(&self) -> impl Iterator<Item = u64> {
        let chain = self.kernel_chain.iter().map(|word| u64::from_ne_bytes(*word)).filter(|at| *at < FIRST_MARK);
        let alone = (self.in_kernel && self.kernel_chain.is_empty()).then_some(self.ip);
        alone.into_iter().chain(chain.filter(|_| self.in_kernel))
    }
}

fn mapped<'a>(fields: &mut Fields<'a>) -> Option<Parsed<'a>> {
    let (pid, _tid) = fields.halves()?;
    let (start, len, offset) = (fields.word()?, fields.word()?, fields.word()?);
    // Device, inode and generation.
    fields.skip(24)?;
    let (protection, _flags) = fields.halves()?;
    let path = text(fields.0);
    Some(if protection & PROT_EXEC != 0 { Parsed::Mapped { pid, start, len, offset, path } } else { Parsed::Other })
}

fn named<'a>(fields: &mut Fields<'a>, exec: bool) -> Option<Parsed<'a>> {
    let (pid, tid) = fields.halves()?;
    Some(Parsed::Named { pid, tid, exec, name: text(fields.0) })
}

fn forked<'a>(fields: &mut Fields<'a>) -> Option<Parsed<'a>> {
    let (pid, parent) = fields.halves()?;
    Some(Parsed::Forked { pid, parent })
}

fn word32(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).map_or(0, |word| u32::from_ne_bytes(word.try_into().unwrap_or_default()))
}

fn text(bytes: &[u8]) -> &[u8] {
    bytes.split(|byte| *byte == 0).next().unwrap_or_default()
}

struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }

    fn skip(&mut self, len: usize) -> Option<()> {
        self.take(len).map(|_| ())
    }

    fn word(&mut self) -> Option<u64> {
        self.take(8).map(|word| u64::from_ne_bytes(word.try_into().unwrap_or_default()))
    }

    fn halves(&mut self) -> Option<(u32, u32)> {
        let halves = self.take(8)?;
        Some((word32(halves, 0), word32(halves, 4)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    #[test]
    fn a_sample_with_stack() {
        let thread = 7 | 8 << 32;
        let body = words(&[0x1000, thread, 99, 0, 5, 1, 0xffff_8000, 2, 0xb, 0x5, 0x1000, 16, 1, 2, 8]);
        let Parsed::Sample(sample) = parse(&Record { kind: SAMPLE, misc: 2, body: &body }) else { panic!("no sample") };
        assert_eq!((sample.ip, sample.pid, sample.tid, sample.time, sample.period), (0x1000, 7, 8, 99, 5));
        assert_eq!(sample.kernel_addresses().count(), 0);
        let user = sample.user.expect("registers");
        assert_eq!((user.ip, user.sp, user.bp, user.stack.len()), (0x1000, 0x5, 0xb, 8));
        assert_eq!(time_of(&Record { kind: SAMPLE, misc: 2, body: &body }), 99);
    }

    #[test]
    fn records_that_end_early_are_nothing() {
        let body = words(&[0x1000, 1, 99, 0, 5, 1 << 60]);
        for len in 0..body.len() {
            assert_eq!(parse(&Record { kind: SAMPLE, misc: 1, body: &body[..len] }), Parsed::Other);
        }
    }
}
