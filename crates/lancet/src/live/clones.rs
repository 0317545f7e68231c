//! Functions cloned with something added, and calls led to the clones.
//!
//! The same plans and the same layout as for files, at an address in the process. The pages of the clones stay for the
//! same functions and the same purpose, so that doing it again needs no new memory.
//!
//! Where exceptions may pass through a clone, its calls return to the old text, from where jumps lead on in the clone. So
//! whoever unwinds the stack finds what he would find without Lancet: tables for addresses of the old text. Landing pads
//! lead to the clone, too.

use lancet_engine::image::Image;
use lancet_engine::layout::{self, Arrivals, Frame, Layout, Survey};
use lancet_engine::plan::Plan;
use lancet_engine::program::FuncId;
use lancet_isa::{Avma, Svma};

use std::path::Path;

use super::{Change, Found, Live, Overwrite, Receipt, Room};
use crate::{Error, Object};

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

    /// Writes the clones of functions, and leads calls of the first `led` of them there.
    pub(super) fn lead_to_clones(
        &mut self,
        functions: &[Found],
        led: usize,
        plan: &Plan,
        room: Room,
        how: &str,
    ) -> Result<Receipt, Error> {
        let bias = self.object(functions[0]).bias;
        let layout = self.lay_out(functions, plan, room.code, room.data)?;
        for chunk in &layout.patch.chunks {
            self.target.memory().write(Avma(chunk.at.0.wrapping_add(bias)), &chunk.bytes)?;
        }
        let mut overwrites = self.overwrites(functions[0], &layout)?;
        if led < functions.len() {
            let program = &self.object(functions[0]).program;
            let changed = |overwrite: &Overwrite| program.func_at(Svma(overwrite.at.0.wrapping_sub(bias)));
            if overwrites.iter().any(|overwrite| changed(overwrite).is_none()) {
                let why = "a table would have to change that others use, too".into();
                return Err(Error::NoJump { pid: self.pid(), function: self.name(functions[0]), why });
            }
            let is_led = |id: FuncId| functions[..led].iter().any(|found| found.id == id);
            overwrites.retain(|overwrite| changed(overwrite).is_some_and(is_led));
        }
        let subject = functions[..led].iter().map(|found| self.name(*found)).collect::<Vec<_>>().join(", ");
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
        let old_returns = functions.iter().any(|found| self.may_unwind(*found)).then_some(object.bias);
        let arrivals = if old_returns.is_some() { Arrivals::Returns } else { Arrivals::Running };
        let survey = Survey::of(&object.program, edit, arrivals, &is_wanted);
        let stated = |at: Avma| Svma(at.0.wrapping_sub(object.bias));
        let counters = Some(stated(counters));
        let frame = Frame { survey: &survey, at: stated(code), keep: None, counters, old_returns, traced: false };
        layout::lay_out(&object.program, edit, plan, &frame).map_err(|cause| Error::Layout { name: name(), cause })
    }

    /// Whether somebody may unwind the stack through a function in order to go on there or above.
    pub(super) fn may_unwind(&self, found: Found) -> bool {
        const UNWINDERS: [&str; 3] = ["libgcc_s.so", "libunwind.so", "libstdc++.so"];
        let has_handlers = |image: &Image| image.fdes().iter().any(|fde| fde.lsda.is_some());
        let is_unwinder = |mapped: &super::Mapped| {
            let file = Path::new(mapped.image.name()).file_name().unwrap_or_default().to_string_lossy();
            UNWINDERS.iter().any(|name| file.starts_with(name))
        };
        let calls = !self.func(found).calls.is_empty();
        calls && (has_handlers(self.object(found).program.image()) || self.mapped.iter().any(is_unwinder))
    }

    /// The patch's changes, at actual addresses.
    fn overwrites(&self, first: Found, layout: &Layout) -> Result<Vec<Overwrite>, Error> {
        let Object { program, bias } = self.object(first);
        let actual = |at: Svma| Avma(at.0.wrapping_add(*bias));
        let mut writes = Vec::new();
        for overwrite in &layout.patch.overwrites {
            let at = actual(overwrite.at);
            let old = self.below(at, &overwrite.old)?;
            // Control arrives at starts of blocks; what stands elsewhere is for jumps on the way.
            let func = program.func_at(overwrite.at).map(|id| program.func(id));
            let is_start = func.is_some_and(|func| func.block_starting_at(overwrite.at).is_some());
            let shut_from = Some(if is_start { at + 1 } else { at });
            let leads_on = if is_start { None } else { far_target(at, &overwrite.new) };
            writes.push(Overwrite { at, old, new: overwrite.new.clone(), shut_from, leads_on });
        }
        for repoint in &layout.patch.repoints {
            let at = actual(repoint.place);
            let old = self.target.memory().read(at, 8)?;
            let new = actual(repoint.to).0.to_le_bytes().to_vec();
            writes.push(Overwrite { at, old, new, shut_from: None, leads_on: None });
        }
        Ok(writes)
    }

    /// What a change at `at` covers: the object's own bytes, or what another change of Lancet's made of them.
    fn below(&self, at: Avma, own: &[u8]) -> Result<Vec<u8>, Error> {
        let found = self.target.memory().read(at, own.len() as u64)?;
        let is_ours = |byte: u64| {
            let writes = self.target.patches().iter().flat_map(|patch| &patch.writes);
            writes.into_iter().any(|write| (write.at..write.at + write.new.len() as u64).contains(&byte))
        };
        let differs = (at.0..).zip(found.iter().zip(own)).filter(|(_, (found, own))| found != own);
        let ours = differs.map(|(byte, _)| byte).all(is_ours);
        Ok(if ours { found } else { own.to_vec() })
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
                    at >= o.at && at < o.at + o.new.len() as u64
                };
                if overwrites.iter().any(|o| is_under(&o)) && insn.at >= piece.old_start && insn.at < piece.old_end {
                    moves.extend(piece.to_new(insn.at).map(|new| (actual(insn.at), actual(new))));
                }
            }
        }
        moves
    }
}

/// Where the far jump leads that these bytes are.
fn far_target(at: Avma, code: &[u8]) -> Option<Avma> {
    let &[0xe9, a, b, c, d] = code else { return None };
    let distance = i64::from(i32::from_le_bytes([a, b, c, d]));
    Some(Avma(at.0.wrapping_add(code.len() as u64).wrapping_add_signed(distance)))
}
