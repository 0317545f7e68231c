//! What must hold for tables of moved code.

use std::collections::BTreeMap;

use lancet_engine::image::Image;
use lancet_engine::layout::unwind::{self, Tables};
use lancet_isa::Svma;

use super::moves::{Moves, Random, new_places, scattered};
use super::reader::{At, Frame, Handling, Lsda, frames, search_table};

/// Far enough behind the image for sections of all sizes, near enough for everything to be in reach.
const DISTANCE: u64 = 0x10_0000;

/// Moves all of an image in some way, and compares what the old and the new tables say about every instruction.
pub fn check(image: &Image, seed: u64) -> usize {
    let end = image.segments().iter().map(|segment| segment.svma + segment.mem_size).max().expect("segments");
    let start = Svma(end.0.next_multiple_of(0x1000) + DISTANCE);
    for fde in image.fdes() {
        assert_eq!(unwind::obstacle(image, fde), None, "{}: {}", image.name(), fde.start);
    }
    let moves = scattered(image, start, &mut Random(seed));
    let at = Svma(moves.end.next_multiple_of(0x1000));
    let tables = unwind::tables(image, &moves.pieces, None, at).unwrap_or_else(|error| panic!("{error}"));
    let tables = tables.expect("the image has unwind tables");
    Checker::new(image, &tables, at).all(&moves);
    moves.insns.len()
}

struct Checker<'a> {
    image: &'a Image,
    block: At<'a>,
    /// By the place of the entry.
    old: BTreeMap<u64, Frame>,
    new: BTreeMap<u64, Frame>,
    /// Old code by its start.
    old_starts: BTreeMap<u64, u64>,
    table: Vec<(u64, u64)>,
}

impl<'a> Checker<'a> {
    fn new(image: &'a Image, tables: &'a Tables, at: Svma) -> Checker<'a> {
        let part = |part: lancet_engine::program::Part| At {
            svma: part.start.0,
            bytes: &tables.bytes[(part.start - at) as usize..(part.end - at) as usize],
        };
        let section = image.section(".eh_frame").expect("a table");
        let bytes = image.bytes(section.svma, section.size).expect("it is in the file");
        let old = frames(At { svma: section.svma.0, bytes });
        let eh_frame = part(tables.eh_frame);
        assert_eq!(eh_frame.bytes.last_chunk(), Some(&[0; 4]), "no terminator");
        assert_eq!(tables.eh_frame_hdr.end - at, tables.bytes.len() as u64);
        Checker {
            image,
            block: At { svma: at.0, bytes: &tables.bytes },
            old_starts: old.values().map(|frame| (frame.start, frame.entry)).collect(),
            old,
            new: frames(eh_frame),
            table: search_table(part(tables.eh_frame_hdr), eh_frame.svma),
        }
    }

    fn all(&self, moves: &Moves) {
        // Nothing is lost: the search table has all old code, and all that is in the chain.
        assert!(self.table.iter().all(|(code, entry)| self.entry(*entry).start == *code));
        let in_chain = self.table.iter().filter(|(_, entry)| self.new.contains_key(entry)).count();
        assert_eq!(in_chain, self.new.len());
        // What stays where it is has an entry in the chain.
        let moved: BTreeMap<u64, u64> = moves.pieces.iter().map(|piece| (piece.old_start.0, piece.old_end.0)).collect();
        let is_moved = |old: &Frame| moved.range(..=old.start).next_back().is_some_and(|(_, end)| old.end <= *end);
        let stays = self.old.values().filter(|old| !is_moved(old));
        assert!(stays.into_iter().all(|old| self.new.contains_key(&self.found(old.start).entry)));
        for old in self.old.values() {
            let copy = self.found(old.start);
            assert_eq!((copy.start, copy.end, &copy.rows), (old.start, old.end, &old.rows));
            assert_eq!((copy.lsda, &copy.personality), (old.lsda, &old.personality));
        }
        let places = new_places(moves);
        for insn in &moves.insns {
            let old = self.old_frame(insn.old).expect("only what has a frame is moved");
            let new = self.found(insn.new);
            let row = old.row(insn.old);
            for at in [insn.begin, insn.new, insn.new_end - 1] {
                let found = self.found(at);
                assert_eq!(found.entry, new.entry, "{insn:x?}");
                assert_eq!(found.row(at), row, "{at:#x} of {insn:x?}");
            }
            assert_eq!(new.personality, old.personality);
            self.same_handling(old, insn.old, new, insn.new, &places);
            self.same_handling(old, insn.old_end - 1, new, insn.new_end - 1, &places);
        }
        for piece in &moves.pieces {
            for (index, aside) in piece.asides.iter().enumerate() {
                let end = piece.asides.get(index + 1).map_or(piece.new_end, |next| next.at);
                let row = self.old_frame(aside.like.0).expect("a frame").row(aside.like.0);
                for at in [aside.at.0, end.0 - 1] {
                    assert_eq!(self.found(at).row(at), row, "{at:#x}, like {}", aside.like);
                }
            }
        }
    }

    /// The entry at a place, in the new table or in the old one.
    fn entry(&self, at: u64) -> &Frame {
        self.new.get(&at).unwrap_or_else(|| &self.old[&at])
    }

    /// As unwinders search.
    fn found(&self, at: u64) -> &Frame {
        let after = self.table.partition_point(|entry| entry.0 <= at);
        let frame = self.entry(self.table[after - 1].1);
        assert!(frame.start <= at && at < frame.end, "{at:#x}: found {:#x}..{:#x}", frame.start, frame.end);
        frame
    }

    fn old_frame(&self, at: u64) -> Option<&Frame> {
        let (_, entry) = self.old_starts.range(..=at).next_back()?;
        Some(&self.old[entry]).filter(|frame| at < frame.end)
    }

    fn same_handling(&self, old: &Frame, at: u64, new: &Frame, new_at: u64, places: &BTreeMap<u64, u64>) {
        let (Some(lsda), Some(new_lsda)) = (old.lsda, new.lsda) else {
            assert_eq!(old.lsda.is_some(), new.lsda.is_some(), "landing pads at {at:#x}");
            return;
        };
        let bytes = self.image.bytes_from(Svma(lsda)).expect("landing pads are in the file");
        let mut expected = Lsda::read(At { svma: lsda, bytes }, old.start).handling(at);
        if let Handling::Pad { pad, .. } = &mut expected {
            *pad = places[pad];
        }
        let bytes = &self.block.bytes[(new_lsda - self.block.svma) as usize..];
        let found = Lsda::read(At { svma: new_lsda, bytes }, new.start).handling(new_at);
        assert_eq!(found, expected, "{at:#x} moved to {new_at:#x}");
    }
}
