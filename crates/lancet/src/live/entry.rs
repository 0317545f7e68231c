//! A jump where a function begins, and a copy of what it overwrites.

use lancet_engine::program::{Func, Program};
use lancet_isa::edit::{Edit, Movable, Reach};
use lancet_isa::{Avma, Flow, Insn, Svma, decode_one};

use super::{Found, Live, Overwrite};
use crate::{Error, Object};

/// `jmp rel32`.
const JUMP: u64 = 5;

/// From an instruction to its copy.
type Moves = Vec<(Avma, Avma)>;

pub(super) struct Entry {
    at: Avma,
    bias: u64,
    old: Vec<u8>,
    /// Instructions that are overwritten, at least in part.
    insns: Vec<(Insn, Vec<u8>)>,
    edit: &'static dyn Edit,
}

impl Entry {
    pub fn of(live: &Live, found: Found) -> Result<Entry, Error> {
        let (object, func) = (live.object(found), live.func(found));
        let refuse = |why: String| Error::NoJump { pid: live.pid(), function: live.name(found), why };
        let edit = object.program.image().isa().editor().ok_or_else(|| refuse("its code cannot be edited".into()))?;
        let code = object.program.image().bytes_from(func.entry).unwrap_or_default();
        // What the machine may check for where pointers lead to stays.
        let begin = func.entry + edit.landing_mark(code) as u64;
        let insns = overwritten(object, func, begin).map_err(refuse)?;
        let at = Avma(begin.0.wrapping_add(object.bias));
        let old = live.target.memory().read(at, JUMP)?;
        Ok(Entry { at, bias: object.bias, old, insns, edit })
    }

    /// One instruction of a function, which will be a trap.
    pub fn of_instruction(live: &Live, found: Found, stated: Svma) -> Result<Entry, Error> {
        let (object, func) = (live.object(found), live.func(found));
        let at = Avma(stated.0.wrapping_add(object.bias));
        let refuse = |why: String| Error::NoJump { pid: live.pid(), function: at.to_string(), why };
        let image = object.program.image();
        let edit = image.isa().editor().ok_or_else(|| refuse("its code cannot be edited".into()))?;
        let mut insns = func.blocks.iter().flat_map(|block| object.program.insns(block));
        let insn = insns
            .find(|insn| insn.at == stated)
            .ok_or_else(|| refuse(format!("no instruction of {} begins there", live.name(found))))?;
        let bytes = image.bytes(stated, insn.len.into()).unwrap_or_default().to_vec();
        let old = live.target.memory().read(at, insn.len.into())?;
        if old != bytes {
            return Err(refuse("its bytes are not those of its file: something changes it already".into()));
        }
        Ok(Entry { at, bias: object.bias, old, insns: vec![(insn, bytes)], edit })
    }

    pub fn jump(&self, pid: u32, to: Avma) -> Result<Overwrite, Error> {
        let distance = to.0.wrapping_sub(self.at.0.wrapping_add(JUMP)).cast_signed();
        let too_far = |_| Error::NoJump { pid, function: self.at.to_string(), why: format!("{to} is out of reach") };
        let distance = i32::try_from(distance).map_err(too_far)?;
        let mut new = vec![0xe9];
        new.extend(distance.to_le_bytes());
        let shut_from = (self.insns.len() > 1).then_some(self.at + 1);
        Ok(Overwrite { at: self.at, old: self.old.clone(), new, shut_from, leads_on: None })
    }

    /// The most that the copy can need.
    pub fn displaced_size(&self) -> u64 {
        self.insns.len() as u64 * 48 + 16
    }

    /// The copy at `place`, and where threads go on. `None` if an instruction cannot run elsewhere.
    pub fn displaced(&self, place: Avma) -> Option<(Vec<u8>, Moves)> {
        let mut code = Vec::new();
        let mut moves = Vec::new();
        let stated = |at: Avma| Svma(at.0.wrapping_sub(self.bias));
        let begin = stated(place);
        for (insn, bytes) in &self.insns {
            let offset = code.len();
            moves.push((Avma(insn.at.0.wrapping_add(self.bias)), place + offset as u64));
            let mut movable = Movable::Never("no instruction");
            self.edit.walk(bytes, insn.at, &mut |_, found| movable = found);
            // The true return address, so that nobody who looks at the stack finds another.
            if let Flow::Call(to) = insn.flow {
                self.edit.call_from(insn.end().0.wrapping_add(self.bias), &mut code);
                let jump = code.len() as u32;
                match (movable, to) {
                    (Movable::Transfers, lancet_isa::Target::Direct(to)) => {
                        let field = self.edit.jump(Reach::Far, &mut code);
                        self.edit.fill(&mut code, begin, field, to).ok()?;
                    }
                    _ if !self.edit.jump_as_call(bytes, &mut code) => return None,
                    (Movable::Refers { field, target }, _) => {
                        self.edit.fill(&mut code, begin, field.shifted(jump), target).ok()?;
                    }
                    _ => {}
                }
                continue;
            }
            match movable {
                Movable::AsIs => code.extend_from_slice(bytes),
                Movable::Refers { field, target } => {
                    code.extend_from_slice(bytes);
                    self.edit.fill(&mut code, begin, field.shifted(offset as u32), target).ok()?;
                }
                Movable::Transfers => {
                    let (Flow::Branch(to) | Flow::Jump(lancet_isa::Target::Direct(to))) = insn.flow else {
                        return None;
                    };
                    let field = self.edit.transfer(bytes, Reach::Far, &mut code);
                    self.edit.fill(&mut code, begin, field, to).ok()?;
                }
                Movable::Never(_) => return None,
            }
        }
        let (last, _) = self.insns.last()?;
        let field = self.edit.jump(Reach::Far, &mut code);
        self.edit.fill(&mut code, begin, field, last.at + u64::from(last.len)).ok()?;
        Some((code, moves))
    }
}

/// The instructions under the jump, or why there must be none.
fn overwritten(object: &Object, func: &Func, begin: Svma) -> Result<Vec<(Insn, Vec<u8>)>, String> {
    let end = begin + JUMP;
    if let Some(block) = func.blocks.iter().find(|block| block.start > begin && block.start < end) {
        return Err(format!(
            "its code at {} is jumped to, and lies under the jump; --how call-sites needs none",
            block.start
        ));
    }
    let mut insns = Vec::new();
    let mut at = begin;
    while at < end {
        let Some(bytes) = object.program.image().bytes_from(at) else {
            return Err("its bytes are not in its file".into());
        };
        let isa = object.program.image().isa();
        if !is_own(&object.program, func, at) {
            // Padding behind a short function may be overwritten.
            let padding =
                decode_one(isa, bytes, at).ok().filter(|insn| isa.is_padding(&bytes[..usize::from(insn.len)], at));
            match padding {
                Some(insn) if object.program.func_at(at).is_none() => at = at + u64::from(insn.len),
                _ => return Err("it is too short for a jump; --how call-sites needs none".into()),
            }
            continue;
        }
        let insn = decode_one(isa, bytes, at).map_err(|error| error.to_string())?;
        let next = at + u64::from(insn.len);
        if matches!(insn.flow, Flow::Call(..)) && next < end {
            return Err(format!("a call at {at} may return to bytes under the jump; --how call-sites needs none"));
        }
        insns.push((insn, bytes[..usize::from(insn.len)].to_vec()));
        at = next;
    }
    Ok(insns)
}

fn is_own(program: &Program, func: &Func, at: Svma) -> bool {
    func.parts.iter().any(|part| part.contains(at)) && program.func_at(at).is_some()
}
