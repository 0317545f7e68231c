//! Threads in the handler of a signal, which will go on where the signal came.
//!
//! Nothing but a thread's stack tells that. The kernel saves there, in a row: where the thread was, its flags, and its
//! segments, code first. Whatever looks like that counts. (No call returns into bytes that change.)

use std::ops::Range;

use lancet_isa::Avma;

use super::Memory;
use super::threads::StoppedThread;
use crate::image::maps::Mapping;

/// So much of a stack is searched.
const STACK: u64 = 32 << 10;
const USER_CODE_SEGMENT: u16 = 0x33;

/// An address that a thread will come back to from a handler, if `matters` for one of them.
pub(super) fn comes_back(
    memory: &Memory,
    threads: &[StoppedThread],
    mapped: &[Mapping],
    matters: impl Fn(u64) -> bool,
) -> Option<Avma> {
    let mut room = vec![0; STACK as usize];
    threads.iter().find_map(|thread| {
        let stack = top_of(thread.stack_pointer()?, mapped);
        let room = &mut room[..(stack.end - stack.start) as usize];
        saved(memory.read_some(Avma(stack.start), room)).find(|at| matters(*at)).map(Avma)
    })
}

/// Beyond the end of a stack is that of another thread.
fn top_of(top: u64, mapped: &[Mapping]) -> Range<u64> {
    let next = mapped.partition_point(|mapping| mapping.range.end.0 <= top);
    let end =
        mapped.get(next).filter(|mapping| mapping.range.start.0 <= top).map_or(u64::MAX, |mapping| mapping.range.end.0);
    top..end.min(top.saturating_add(STACK))
}

/// Where the kernel may have saved that a thread was.
fn saved(stack: &[u8]) -> impl Iterator<Item = u64> {
    stack.as_chunks::<8>().0.windows(3).filter_map(|words| {
        let [at, _flags, segments] = words else { return None };
        let code = u16::from_le_bytes([segments[0], segments[1]]);
        (code == USER_CODE_SEGMENT).then_some(u64::from_le_bytes(*at))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_saves_is_found() {
        let words = [7_u64, 0x1234, 0x246, 0x2b_0000_0000_0033, 9, 0x5678, 0, 0x32];
        let stack: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        assert_eq!(saved(&stack).collect::<Vec<_>>(), [0x1234]);
    }

    #[test]
    fn stacks_end_with_their_mapping() {
        let mapping = |start: u64, end: u64| Mapping {
            range: Avma(start)..Avma(end),
            executable: false,
            offset: 0,
            file: (String::new(), 0),
            name: String::new(),
            deleted: false,
        };
        let mapped = [mapping(0x1000, 0x3000), mapping(0x8000, 0x9_0000)];
        assert_eq!(top_of(0x2ff0, &mapped), 0x2ff0..0x3000);
        assert_eq!(top_of(0x8000, &mapped), 0x8000..0x8000 + STACK);
        // A stack that has grown since.
        assert_eq!(top_of(0x7ff0, &mapped), 0x7ff0..0x7ff0 + STACK);
    }
}
