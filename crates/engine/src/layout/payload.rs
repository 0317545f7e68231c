//! Routines that come with a plan: their code goes before the clones, their data behind everything.

use lancet_isa::edit::Edit;
use lancet_isa::{Avma, Svma};

use super::{CodeChunk, LayoutError, PAGE};
use crate::image::Image;
use crate::layout::patch::{Chunk, ChunkKind};
use crate::load::{LoadError, Module};
use crate::program::Program;

/// A module that has a place for its code.
pub(super) struct Payload<'a> {
    module: &'a Module,
    pub at: Svma,
}

impl<'a> Payload<'a> {
    /// Reserves room for the code.
    pub fn reserve(module: &'a Module, code: &mut CodeChunk) -> Payload<'a> {
        let at = code.aligned_end();
        let (len, _) = module.size();
        code.put(at, &vec![0; len as usize]);
        Payload { module, at }
    }

    /// Fills the room, now that all code is there, and makes a chunk for the data.
    pub fn place(
        &self,
        program: &Program,
        edit: &dyn Edit,
        code: &mut CodeChunk,
    ) -> Result<Option<Chunk>, LayoutError> {
        let image = program.image();
        let unusable = |what: &str| LoadError::Unusable { name: self.module.name().to_owned(), what: what.to_owned() };
        self.module.must_be_for(image.isa())?;
        if self.module.is_apart() {
            return Err(unusable("a payload must be a relocatable object").into());
        }
        let data_at = Svma(code.end().0.next_multiple_of(PAGE));
        let linked = self.link(image, 0, data_at)?;
        // What is the same wherever it is placed refers to nothing by its address.
        const ELSEWHERE: u64 = 0x10_0000;
        if image.kind().is_position_independent() && linked != self.link(image, ELSEWHERE, data_at)? {
            return Err(unusable("it has addresses in it, which change where the program is loaded: use -fPIC").into());
        }
        self.check(image, edit, &linked.code)?;
        let offset = (self.at - code.at) as usize;
        code.bytes[offset..offset + linked.code.len()].copy_from_slice(&linked.code);
        let (_, size) = self.module.size();
        Ok((size > 0).then_some(Chunk { at: data_at, bytes: linked.data, kind: ChunkKind::Data { size } }))
    }

    fn link(&self, image: &Image, shift: u64, data: Svma) -> Result<crate::load::Linked, LoadError> {
        let symbols = image.symbols();
        let resolve = |name: &str| {
            let symbol =
                symbols.iter().find(|symbol| image.symbol_name(symbol) == name && image.is_code(symbol.svma))?;
            Some(Avma(symbol.svma.0 + shift))
        };
        self.module.link(Avma(self.at.0 + shift), Avma(data.0 + shift), &resolve)
    }

    /// Routines must leave alone what calls of them do not save.
    fn check(&self, image: &Image, edit: &dyn Edit, code: &[u8]) -> Result<(), LayoutError> {
        let kept = edit.kept_around_calls();
        for routine in &self.module.exports {
            let range = routine.offset as usize..(routine.offset + routine.size) as usize;
            let Some(code) = code.get(range) else { continue };
            let mut other = None;
            // What does not decode is never run.
            let _ = image.isa().decode(code, Svma(routine.offset), &mut |insn| {
                if !insn.effects.writes.without(kept).is_empty() {
                    other = Some(insn.at);
                    return std::ops::ControlFlow::Break(());
                }
                std::ops::ControlFlow::Continue(())
            });
            if let Some(at) = other {
                let what = format!(
                    "{} changes a register at {at} that calls of it do not save: use -mgeneral-regs-only",
                    routine.name
                );
                return Err(LoadError::Unusable { name: self.module.name().to_owned(), what }.into());
            }
        }
        Ok(())
    }
}
