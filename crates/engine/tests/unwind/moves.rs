//! Made-up moves of real functions: blocks grow, code is put between instructions and aside, parts of a function
//! change places, neighbours move together.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use lancet_engine::image::{Fde, Image};
use lancet_engine::layout::{Aside, MovedPiece, Span};
use lancet_engine::program::FuncId;
use lancet_isa::{Insn, Svma};

/// xorshift64*: moves must be the same in every run.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % limit
    }

    fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }
}

/// An instruction and where it went.
#[derive(Clone, Copy, Debug)]
pub struct MovedInsn {
    pub old: u64,
    pub old_end: u64,
    /// Where control arrives, with what was added in front of it.
    pub begin: u64,
    pub new: u64,
    pub new_end: u64,
}

#[derive(Default)]
pub struct Moves {
    pub pieces: Vec<MovedPiece>,
    pub insns: Vec<MovedInsn>,
    pub end: u64,
}

/// Moves every function to `at` and behind.
pub fn scattered(image: &Image, at: Svma, random: &mut Random) -> Moves {
    let mut moves = Moves { end: at.0, ..Moves::default() };
    let fdes: Vec<&Fde> = image.fdes().iter().filter(|fde| movable(image, fde)).collect();
    let mut next = 0;
    while let Some(&fde) = fdes.get(next) {
        next += 1;
        let func = FuncId(next as u32);
        let mut insns = instructions(image, fde);
        if random.one_in(8) && insns.len() > 4 {
            // Two parts, the second in front of the first.
            let second = insns.split_off(insns.len() / 2);
            moves.piece(func, &second, random);
            moves.piece(func, &insns, random);
            continue;
        }
        while let Some(neighbour) = fdes.get(next).filter(|fde| insns.last().is_some_and(|i| i.end() == fde.start)) {
            if !random.one_in(4) {
                break;
            }
            insns.extend(instructions(image, neighbour));
            next += 1;
        }
        moves.piece(func, &insns, random);
    }
    let likes: Vec<u64> = moves.insns.iter().map(|insn| insn.old).collect();
    for piece in &mut moves.pieces {
        add_asides(piece, &likes, random);
    }
    moves
}

/// Every function stays where it is.
pub fn in_place(image: &Image) -> Vec<MovedPiece> {
    let fdes = image.fdes().iter().filter(|fde| movable(image, fde)).enumerate();
    let stay = |(index, fde): (usize, &Fde)| MovedPiece {
        counted: Vec::new(),
        func: FuncId(index as u32),
        old_start: fde.start,
        old_end: fde.end(),
        new_start: fde.start,
        body_end: fde.end(),
        new_end: fde.end(),
        spans: vec![Span { old: fde.start, begin: fde.start, body: fde.start }],
        asides: Vec::new(),
    };
    fdes.map(stay).collect()
}

fn movable(image: &Image, fde: &Fde) -> bool {
    let section = image.sections().iter().find(|section| section.contains(fde.start));
    let stub = section.is_some_and(|section| section.name.starts_with(".plt"));
    !stub && !fde.signal_frame && !instructions(image, fde).is_empty()
}

fn instructions(image: &Image, fde: &Fde) -> Vec<Insn> {
    let mut insns = Vec::new();
    let code = image.bytes(fde.start, fde.len).expect("code is in the file");
    let _ = image.isa().decode(code, fde.start, &mut |insn| {
        insns.push(*insn);
        ControlFlow::Continue(())
    });
    // What is no instruction (data, hand-written oddities) is not moved.
    if insns.last().is_none_or(|insn| insn.end() != fde.end()) { Vec::new() } else { insns }
}

impl Moves {
    fn piece(&mut self, func: FuncId, insns: &[Insn], random: &mut Random) {
        self.end = self.end.next_multiple_of(16);
        let new_start = self.end;
        let mut spans: Vec<Span> = Vec::new();
        for (index, insn) in insns.iter().enumerate() {
            let begins = index == 0 || insns[index - 1].flow.ends_block() || random.one_in(6);
            let begin = self.end;
            if begins {
                // Something is added in front, mostly little.
                self.end += match random.below(1000) {
                    0 => random.below(100_000),
                    1..500 => random.below(30),
                    _ => 0,
                };
                spans.push(Span { old: insn.at, begin: Svma(begin), body: Svma(self.end) });
            }
            let new = self.end;
            self.end += u64::from(insn.len);
            // Jumps may need more room, and calls too.
            if insn.flow.ends_block() && random.one_in(3) {
                self.end += random.below(8);
            }
            self.insns.push(MovedInsn { old: insn.at.0, old_end: insn.end().0, begin, new, new_end: self.end });
        }
        let (first, last) = (&insns[0], &insns[insns.len() - 1]);
        let room = 16 * random.below(5);
        self.pieces.push(MovedPiece {
            counted: Vec::new(),
            func,
            old_start: first.at,
            old_end: last.end(),
            new_start: Svma(new_start),
            body_end: Svma(self.end),
            new_end: Svma(self.end + room),
            spans,
            asides: Vec::new(),
        });
        self.end += room;
    }
}

/// Fills the room behind the body of a piece.
fn add_asides(piece: &mut MovedPiece, likes: &[u64], random: &mut Random) {
    let near = likes.partition_point(|&like| like < piece.old_start.0);
    let mut at = piece.body_end;
    while at < piece.new_end {
        // Mostly like something in the piece itself.
        let (from, count) = if random.one_in(10) { (0, likes.len()) } else { (near, 20.min(likes.len() - near)) };
        let like = likes.get(from + random.below(count.max(1) as u64) as usize).copied().unwrap_or(likes[0]);
        piece.asides.push(Aside { at, like: Svma(like) });
        at = at + 16;
    }
}

/// Where the code of a function went, by its old address.
pub fn new_places(moves: &Moves) -> BTreeMap<u64, u64> {
    moves.insns.iter().map(|insn| (insn.old, insn.begin)).collect()
}
