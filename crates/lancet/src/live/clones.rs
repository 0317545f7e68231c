//! Functions cloned with something added, and calls led to the clones.
//!
//! The same plans and the same layout as for files, at an address in the process. The pages of the clones stay for the
//! same functions and the same purpose, so that doing it again needs no new memory.

use lancet_engine::layout::{self, Frame, Layout, Survey};
use lancet_engine::plan::Plan;
use lancet_engine::program::FuncId;
use lancet_isa::{Avma, Svma};

use super::{Change, Found, Live, Overwrite, Receipt, Room};
use crate::Error;

impl Live {
    /// Pages for clones of functions of one object, and `data` bytes behind them; the same for the same functions.
    pub(super) fn clones_room(
        &mut self,
        functions: &[Found],
        plan: &Plan,
        what: &str,
        data: u64,
    ) -> Result<Room, Error> {
        let near = self.entry(functions[0]);
        let entries: Vec<String> = functions.iter().map(|found| self.entry(*found).to_string()).collect();
        let key = format!("{what} {data} {}", entries.join(" "));
        if let Some((code, len)) = self.target.placed(&key) {
            return Ok(Room { code, data: code + len });
        }
        // How long clones are depends little on where they are: lay out twice, the second time for good.
        let draft = self.lay_out(functions, plan, near, near)?;
        let size: u64 = draft.patch.chunks.iter().map(|chunk| chunk.bytes.len() as u64).sum();
        let room = self.target.reserve_apart(near, size + layout::PAGE, data)?;
        self.target.remember(key, room.code, room.data - room.code)?;
        Ok(room)
    }

    /// Writes the clones and leads calls to them.
    pub(super) fn lead_to_clones(
        &mut self,
        functions: &[Found],
        plan: &Plan,
        room: Room,
        how: &str,
    ) -> Result<Receipt, Error> {
        let bias = self.object(functions[0]).bias;
        let layout = self.lay_out(functions, plan, room.code, room.data)?;
        for chunk in &layout.patch.chunks {
            self.target.memory().write(Avma(chunk.at.0.wrapping_add(bias)), &chunk.bytes)?;
        }
        let subject = functions.iter().map(|found| self.name(*found)).collect::<Vec<_>>().join(", ");
        let overwrites = self.overwrites(&layout, bias)?;
        let moves = self.moves(functions[0], &layout, &overwrites);
        let change = Change { command: self.command.clone(), subject, how: how.into(), overwrites, moves };
        Ok(self.target.commit(change)?)
    }

    fn lay_out(&self, functions: &[Found], plan: &Plan, code: Avma, counters: Avma) -> Result<Layout, Error> {
        let object = self.object(functions[0]);
        let name = || object.name().to_owned();
        let isa = object.program.image().isa();
        let edit = isa.editor().ok_or_else(|| Error::NoEditor { name: name(), isa: isa.facts().name })?;
        let is_wanted = |id: FuncId| functions.iter().any(|found| found.id == id);
        let survey = Survey::of(&object.program, edit, &is_wanted);
        let stated = |at: Avma| Svma(at.0.wrapping_sub(object.bias));
        let frame =
            Frame { survey: &survey, at: stated(code), keep: None, counters: Some(stated(counters)), traced: false };
        layout::lay_out(&object.program, edit, plan, &frame).map_err(|cause| Error::Layout { name: name(), cause })
    }

    /// The patch's changes, at actual addresses.
    fn overwrites(&self, layout: &Layout, bias: u64) -> Result<Vec<Overwrite>, Error> {
        let actual = |at: Svma| Avma(at.0.wrapping_add(bias));
        let of_code = layout.patch.overwrites.iter();
        let mut writes: Vec<Overwrite> =
            of_code.map(|o| Overwrite { at: actual(o.at), old: o.old.clone(), new: o.new.clone() }).collect();
        for repoint in &layout.patch.repoints {
            let at = actual(repoint.place);
            let old = self.target.memory().read(at, 8)?;
            writes.push(Overwrite { at, old, new: actual(repoint.to).0.to_le_bytes().to_vec() });
        }
        Ok(writes)
    }

    /// Where threads go on that stand at an instruction under a jump: in the clone.
    fn moves(&self, first: Found, layout: &Layout, overwrites: &[Overwrite]) -> Vec<(Avma, Avma)> {
        let object = self.object(first);
        let actual = |at: Svma| Avma(at.0.wrapping_add(object.bias));
        let mut moves = Vec::new();
        for piece in &layout.pieces {
            let func = object.program.func(piece.func);
            for insn in func.blocks.iter().flat_map(|block| object.program.insns(block)) {
                let is_under = |o: &&Overwrite| {
                    let at = actual(insn.at);
                    at > o.at && at < o.at + o.new.len() as u64
                };
                if overwrites.iter().any(|o| is_under(&o)) && insn.at >= piece.old_start && insn.at < piece.old_end {
                    moves.extend(piece.to_new(insn.at).map(|new| (actual(insn.at), actual(new))));
                }
            }
        }
        moves
    }
}
