//! From the old text to the clones.
//!
//! Function pointers, tables and other objects still lead to the old addresses, so a jump stands there. A far jump has
//! five bytes; what it covers is dead, because the whole function runs in its clone. Where there is no room for it, a
//! near jump leads to a far one nearby: in the padding between functions, or in dead code of the same function.
//!
//! In a process, threads may be in the old text. There a jump covers nothing that others jump to, and dead code is only
//! what stands behind a jump at the start of a block; such jumps are added where they are needed.
//!
//! Invariants: only bytes of decoded blocks of edited functions and of padding are overwritten, nothing twice, and no
//! byte at which control may arrive other than the first of a jump.

use std::collections::BTreeMap;

use lancet_isa::edit::{Edit, Reach};
use lancet_isa::{Isa, Svma, decode_one};

use super::survey::Obstacle;
use crate::program::{Block, EdgeKind, Func, FuncId, Program};

/// A jump that leads from the old text to a clone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Redirect {
    /// The address at which control may still arrive.
    pub point: Svma,
    pub func: FuncId,
    /// Where the jump stands: at the point, or behind its landing mark.
    pub at: Svma,
    /// Where the far jump stands if there is only a near one at `at`.
    pub by: Option<Svma>,
}

/// How far behind or ahead a near jump's far one is looked for.
const NEAR: u64 = 120;
/// Functions are aligned to no more.
const LONGEST_PADDING: u64 = 64;

pub(super) struct Finder<'a> {
    program: &'a Program,
    isa: &'static dyn Isa,
    near: u64,
    far: u64,
    /// Every point of every function that may be edited, with its function, by address.
    points: BTreeMap<Svma, FuncId>,
    /// Bytes that jumps cover: start and end.
    used: BTreeMap<Svma, Svma>,
    edit: &'static dyn Edit,
    /// Threads may be in the functions.
    runs: bool,
}

impl<'a> Finder<'a> {
    pub fn new(
        program: &'a Program,
        edit: &'static dyn Edit,
        points: BTreeMap<Svma, FuncId>,
        runs: bool,
    ) -> Finder<'a> {
        let size = |reach| {
            let mut out = Vec::new();
            edit.jump(reach, &mut out);
            out.len() as u64
        };
        let isa = program.image().isa();
        let (near, far) = (size(Reach::Near), size(Reach::Far));
        Finder { program, isa, near, far, points, used: BTreeMap::new(), edit, runs }
    }

    /// Jumps for all points of a function, or why there is no room for them.
    pub fn find(&mut self, id: FuncId, points: &[Svma]) -> Result<Vec<Redirect>, Obstacle> {
        if self.runs {
            self.find_running(id, points)
        } else {
            let func = self.program.func(id);
            // First all that have room of their own, so that no far jump of another stands behind their first byte.
            let is_roomy =
                |point: &Svma| self.room(func, *point, Svma(u64::MAX)) >= self.behind_mark(*point) - *point + self.far;
            let (roomy, tight): (Vec<Svma>, Vec<Svma>) = points.iter().partition(|point| is_roomy(point));
            let one = |finder: &mut Self, point: Svma, _: &mut Vec<Redirect>| {
                let (at, room) = (finder.behind_mark(point), finder.room(func, point, Svma(u64::MAX)));
                match room.saturating_sub(at - point) {
                    room if room >= finder.far => Some(Redirect { point, func: id, at, by: None }),
                    room if room >= finder.near => {
                        finder.hole(func, at).map(|hole| Redirect { point, func: id, at, by: Some(hole) })
                    }
                    _ => None,
                }
            };
            self.find_all(roomy.into_iter().chain(tight), one)
        }
    }

    /// The same where threads may be in the function. First all that have room of their own.
    fn find_running(&mut self, id: FuncId, points: &[Svma]) -> Result<Vec<Redirect>, Obstacle> {
        let func = self.program.func(id);
        let taken = func.edges.iter().filter(|edge| edge.kind != EdgeKind::Fall).map(|edge| func.block(edge.to).start);
        let mut starts: Vec<Svma> = taken.chain(func.entries.iter().map(|block| func.block(*block).start)).collect();
        starts.sort_unstable();
        let room = |finder: &Self, point: Svma| {
            let next = starts.get(starts.partition_point(|start| *start <= point)).copied();
            finder.room(func, point, next.unwrap_or(Svma(u64::MAX)))
        };
        let is_roomy =
            |finder: &Self, point: Svma| room(finder, point) >= finder.behind_mark(point) - point + finder.far;
        let (roomy, tight): (Vec<Svma>, Vec<Svma>) = points.iter().partition(|point| is_roomy(self, **point));
        let one = |finder: &mut Self, point: Svma, found: &mut Vec<Redirect>| {
            let at = finder.behind_mark(point);
            let own = room(finder, point).saturating_sub(at - point);
            if own >= finder.far {
                return Some(Redirect { point, func: id, at, by: None });
            }
            if own < finder.near {
                return None;
            }
            let padding = |hole: &Svma| finder.is_hole(func, *hole, at);
            let by = finder.near_to(at).find(padding).or_else(|| {
                // Behind a jump at the start of a block.
                let is_near = |block: &&Block| block.start.0.abs_diff(at.0) < NEAR - finder.far;
                let blocks = func.blocks.iter().filter(is_near).map(|block| block.start);
                let (start, hole) =
                    blocks.map(|start| (start, finder.behind_mark(start) + finder.far)).find(|(start, hole)| {
                        let is_apart = *hole + finder.far <= at || *start >= at + finder.near;
                        let has_jump = found.iter().any(|other| other.point == *start && other.by.is_none());
                        let is_point = finder.points.contains_key(start);
                        let free = if has_jump { finder.room_from(func, *hole, &starts) } else { room(finder, *start) };
                        let wanted = if has_jump { finder.far } else { *hole + finder.far - *start };
                        is_apart && (has_jump || !is_point) && free >= wanted
                    })?;
                if !found.iter().any(|other| other.point == start) {
                    let jump = Redirect { point: start, func: id, at: finder.behind_mark(start), by: None };
                    finder.take(&jump);
                    found.push(jump);
                }
                Some(hole)
            });
            by.map(|hole| Redirect { point, func: id, at, by: Some(hole) })
        };
        self.find_all(roomy.into_iter().chain(tight), one)
    }

    fn find_all(
        &mut self,
        points: impl Iterator<Item = Svma>,
        one: impl Fn(&mut Self, Svma, &mut Vec<Redirect>) -> Option<Redirect>,
    ) -> Result<Vec<Redirect>, Obstacle> {
        let mut found = Vec::new();
        for point in points {
            match one(self, point, &mut found) {
                Some(redirect) => {
                    self.take(&redirect);
                    found.push(redirect);
                }
                None => {
                    found.iter().for_each(|redirect| self.give_back(redirect));
                    return Err(Obstacle::NoRoom { at: point });
                }
            }
        }
        Ok(found)
    }

    /// Where a jump stands: what the machine checks for stays in front.
    fn behind_mark(&self, point: Svma) -> Svma {
        point + self.program.image().bytes_from(point).map_or(0, |code| self.edit.landing_mark(code)) as u64
    }

    /// How many bytes are free inside a block that has a jump at its start.
    fn room_from(&self, func: &Func, at: Svma, starts: &[Svma]) -> u64 {
        let next = starts.get(starts.partition_point(|start| *start <= at)).copied();
        self.room(func, at, next.unwrap_or(Svma(u64::MAX)))
    }

    fn take(&mut self, redirect: &Redirect) {
        let len = if redirect.by.is_some() { self.near } else { self.far };
        self.used.insert(redirect.at, redirect.at + len);
        if let Some(hole) = redirect.by {
            self.used.insert(hole, hole + self.far);
        }
    }

    fn give_back(&mut self, redirect: &Redirect) {
        self.used.remove(&redirect.at);
        redirect.by.map(|hole| self.used.remove(&hole));
    }

    /// How many bytes from a point on, before `limit`, may be overwritten.
    fn room(&self, func: &Func, point: Svma, limit: Svma) -> u64 {
        let next = self.points.range(point + 1..).next().map_or(Svma(u64::MAX), |(at, _)| *at);
        let want = 2 * self.far;
        let mut end = point;
        while end - point < want {
            match func.block_at(end) {
                Some(block) => end = func.block(block).end(),
                None => match self.padding(end) {
                    0 => break,
                    len => end = end + len,
                },
            }
        }
        let taken = self.used.range(point..end).next().map_or(end, |(start, _)| *start);
        let before = self.used.range(..point).next_back().is_some_and(|(_, used)| *used > point);
        if before { 0 } else { end.min(next).min(taken).min(limit) - point }
    }

    /// How many bytes from `at` on are padding between functions: only nothing-doing instructions from the end of the
    /// function before up to here.
    fn padding(&self, at: Svma) -> u64 {
        let image = self.program.image();
        if self.program.func_at(at).is_some() || !image.is_code(at) {
            return 0;
        }
        let Some(mut end) = self.program.end_before(at).filter(|end| at - *end < LONGEST_PADDING) else { return 0 };
        while end <= at {
            let Some(code) = image.bytes_from(end) else { return 0 };
            let code = &code[..code.len().min(usize::from(self.isa.facts().longest_insn))];
            match decode_one(self.isa, code, end) {
                Ok(insn) if self.isa.is_padding(code, end) => end = insn.end(),
                _ => return 0,
            }
        }
        if self.program.func_at(Svma(end.0 - 1)).is_some() { 0 } else { end - at }
    }

    /// Room for a far jump that a near one at `at` reaches.
    fn hole(&self, func: &Func, at: Svma) -> Option<Svma> {
        self.near_to(at).find(|hole| self.is_hole(func, *hole, at))
    }

    fn near_to(&self, at: Svma) -> impl Iterator<Item = Svma> + use<> {
        let (near, far) = (self.near, self.far);
        (0..NEAR).flat_map(move |d| [at + (near + d), Svma(at.0.saturating_sub(far + d))])
    }

    fn is_hole(&self, func: &Func, hole: Svma, at: Svma) -> bool {
        let end = hole + self.far;
        let apart = end <= at || hole >= at + self.near;
        let no_point = self.points.range(hole..end).next().is_none();
        let before = self.used.range(..hole).next_back().is_some_and(|(_, used)| *used > hole);
        apart && no_point && !before && self.used.range(hole..end).next().is_none() && self.is_free(func, hole, end)
    }

    /// Dead code of the function, or padding that no function has.
    fn is_free(&self, func: &Func, start: Svma, end: Svma) -> bool {
        let mut at = start;
        while at < end {
            match func.block_at(at) {
                Some(_) if self.runs => return false,
                Some(block) => at = func.block(block).end(),
                None => match self.padding(at) {
                    0 => return false,
                    len => at = at + len,
                },
            }
        }
        true
    }
}
