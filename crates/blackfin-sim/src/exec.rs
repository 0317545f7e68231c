//! The interpreter's loop.
//!
//! [`Core::run`] executes the uops of a block one after the other. It knows neither addresses nor hardware loops: whoever
//! cut the block does. An instruction either completes or has no effect.

use crate::alu::add_bit_reversed;
use crate::astat;
use crate::core::{Core, Path};
use crate::exception::Fault;
use crate::lower::{load_width, store_width};
use crate::state::with_half;
use crate::uop::{Bundle, Mem, Slot, Uop};
use lancet_isa::blackfin::{Address, CcBitOp, Compare, DPreg, Dreg, Half, Load, LoopCount, Preg, Store};

/// How a block ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Behind its last instruction.
    Fall,
    /// By this instruction, to this address.
    Jump(usize, u32),
    /// Before this instruction, which could not be done.
    Stop(usize, Fault),
}

impl Core {
    #[inline(always)]
    fn ea(&self, mem: Mem) -> u32 {
        self.state.p(mem.base).wrapping_add_signed(mem.offset)
    }

    /// Moves a pointer on after an access.
    #[inline(always)]
    fn post(&mut self, mem: Mem) {
        self.state.set_p(mem.base, self.ea(mem));
    }

    #[inline(always)]
    fn compare<const RELATION: u16>(&mut self, left: Dreg, right: u32) {
        if let Some(relation) = Compare::from_code(RELATION) {
            self.state.compare(relation, self.state.d(left), right);
        }
    }

    pub fn run<P: Path>(&mut self, ops: &[Uop], bundles: &[Bundle]) -> Exit {
        for (index, op) in ops.iter().enumerate() {
            /// The value, or the end of the block with nothing done.
            macro_rules! done {
                ($result:expr) => {
                    match $result {
                        Ok(value) => value,
                        Err(fault) => return Exit::Stop(index, fault),
                    }
                };
            }
            macro_rules! load {
                ($mem:ident, $width:literal, $addr:expr, $extend:expr) => {{
                    let value = done!(self.load::<$width, P>($addr));
                    self.state.set_dp($mem.reg, $extend(value));
                }};
            }
            macro_rules! store {
                ($mem:ident, $width:literal, $addr:expr) => {
                    done!(self.store::<$width, P>($addr, self.state.dp($mem.reg)))
                };
            }
            macro_rules! alu {
                ($dst:ident, $value:expr) => {{
                    let value = $value;
                    self.state.set_d($dst, value);
                }};
            }
            match *op {
                Uop::Nop => {}
                Uop::Slow => return Exit::Stop(index, Fault::Slow),

                Uop::Branch { cc, target } => {
                    if self.state.cc == cc {
                        return Exit::Jump(index, target);
                    }
                }
                Uop::Jump { target } => return Exit::Jump(index, target),
                Uop::Call { target, back } => {
                    self.state.rets = back;
                    return Exit::Jump(index, target);
                }
                Uop::JumpReg(to) => {
                    let target = self.state.p(to);
                    done!(self.jump_target::<P>(target));
                    return Exit::Jump(index, target);
                }
                Uop::CallReg { to, back } => {
                    let target = self.state.p(to);
                    done!(self.jump_target::<P>(target));
                    self.state.rets = back;
                    return Exit::Jump(index, target);
                }
                Uop::JumpOffset { by, pc } => {
                    let target = self.state.p(by).wrapping_add(pc);
                    done!(self.jump_target::<P>(target));
                    return Exit::Jump(index, target);
                }
                Uop::CallOffset { by, pc } => {
                    let target = self.state.p(by).wrapping_add(pc);
                    done!(self.jump_target::<P>(target));
                    self.state.rets = pc.wrapping_add(2);
                    return Exit::Jump(index, target);
                }
                Uop::ReturnSubroutine => {
                    let target = self.state.rets;
                    done!(self.jump_target::<P>(target));
                    return Exit::Jump(index, target);
                }
                Uop::LoopSetup { which, count, top, bottom } => {
                    let which = which as usize;
                    match count {
                        LoopCount::Keep => {}
                        LoopCount::Reg(reg) => self.state.lc[which] = self.state.p(reg),
                        LoopCount::HalfReg(reg) => self.state.lc[which] = self.state.p(reg) >> 1,
                    }
                    self.state.lt[which] = top;
                    self.state.lb[which] = bottom;
                }

                Uop::Const { dst, value } => self.state.r[dst.index()] = value,
                Uop::SetLow { dst, value } => {
                    let reg = &mut self.state.r[dst.index()];
                    *reg = with_half(*reg, Half::Lo, value);
                }
                Uop::SetHigh { dst, value } => {
                    let reg = &mut self.state.r[dst.index()];
                    *reg = with_half(*reg, Half::Hi, value);
                }
                Uop::Move { dst, src } => self.state.r[dst.index()] = self.state.r[src.index()],
                Uop::MoveIf { cc, dst, src } => {
                    let source = if self.state.cc == cc { src } else { dst };
                    self.state.set_dp(dst, self.state.dp(source));
                }
                Uop::FromAstat(dst) => self.state.set_d(dst, self.state.astat()),
                Uop::ToAstat(src) => self.state.set_astat(self.state.r[src.index()]),
                Uop::FromRets(dst) => self.state.r[dst.index()] = self.state.rets,
                Uop::SetRets(back) => self.state.rets = back,
                Uop::ToRets(src) => self.state.rets = self.state.r[src.index()],
                Uop::FromAccExt { dst, acc } => {
                    self.state.r[dst.index()] = (self.state.acc[usize::from(acc & 1)] >> 32) as u32;
                }
                Uop::FromAccWord { dst, acc } => {
                    self.state.r[dst.index()] = self.state.acc[usize::from(acc & 1)] as u32;
                }
                Uop::ToAccExt { acc, src } => {
                    let value = self.state.r[src.index()];
                    let acc = &mut self.state.acc[usize::from(acc & 1)];
                    *acc = i64::from(value as i8) << 32 | *acc & 0xFFFF_FFFF;
                }
                Uop::ToAccWord { acc, src } => {
                    let value = self.state.r[src.index()];
                    let acc = &mut self.state.acc[usize::from(acc & 1)];
                    *acc = *acc & !0xFFFF_FFFF | i64::from(value);
                }
                Uop::FromLoopCount { dst, which } => {
                    self.state.r[dst.index()] = self.state.lc[usize::from(which & 1)];
                }
                Uop::ToLoopCount { which, src } => {
                    self.state.lc[usize::from(which & 1)] = self.state.r[src.index()];
                }

                Uop::Equal { left, right } => self.compare::<0>(left, self.state.d(right)),
                Uop::Less { left, right } => self.compare::<1>(left, self.state.d(right)),
                Uop::LessOrEqual { left, right } => self.compare::<2>(left, self.state.d(right)),
                Uop::LessUnsigned { left, right } => self.compare::<3>(left, self.state.d(right)),
                Uop::LessOrEqualUnsigned { left, right } => self.compare::<4>(left, self.state.d(right)),
                Uop::EqualImm { left, right } => self.compare::<0>(left, right as u32),
                Uop::LessImm { left, right } => self.compare::<1>(left, right as u32),
                Uop::LessOrEqualImm { left, right } => self.compare::<2>(left, right as u32),
                Uop::LessUnsignedImm { left, right } => self.compare::<3>(left, right as u32),
                Uop::LessOrEqualUnsignedImm { left, right } => self.compare::<4>(left, right as u32),
                Uop::ComparePointers { relation, left, right } => {
                    self.state.compare_pointers(relation, self.state.p(left), self.state.p(right));
                }
                Uop::ComparePointerImm { relation, left, right } => {
                    self.state.compare_pointers(relation, self.state.p(left), right as u32);
                }
                Uop::MoveFromCc(dst) => self.state.set_d(dst, u32::from(self.state.cc)),
                Uop::MoveToCc(src) => self.state.cc = self.state.d(src) != 0,
                Uop::NegateCc => self.state.cc = !self.state.cc,
                Uop::CcBit { op, bit, to_cc } => self.cc_bit(op, bit, to_cc),
                Uop::BitTest { set, reg, bit } => {
                    self.state.cc = (self.state.d(reg) >> (bit & 31) & 1 != 0) == set;
                }

                Uop::AddImm { dst, imm } => alu!(dst, self.state.add(self.state.d(dst), imm as u32)),
                Uop::AddImmP { dst, imm } => {
                    self.state.set_p(dst, self.state.p(dst).wrapping_add_signed(imm.into()));
                }
                Uop::Add { dst, a, b } => alu!(dst, self.state.add(self.state.d(a), self.state.d(b))),
                Uop::Sub { dst, a, b } => alu!(dst, self.state.sub(self.state.d(a), self.state.d(b))),
                Uop::And { dst, a, b } => alu!(dst, self.state.logical(self.state.d(a) & self.state.d(b))),
                Uop::Or { dst, a, b } => alu!(dst, self.state.logical(self.state.d(a) | self.state.d(b))),
                Uop::Xor { dst, a, b } => alu!(dst, self.state.logical(self.state.d(a) ^ self.state.d(b))),
                Uop::AddP { dst, a, b, shift } => {
                    let sum = self.state.p(a).wrapping_add(self.state.p(b) << (shift & 3));
                    self.state.set_p(dst, sum);
                }
                Uop::Ptr2 { op, dst, src } => {
                    let value = self.state.ptr2(op, self.state.p(dst), self.state.p(src));
                    self.state.set_p(dst, value);
                }
                Uop::Multiply { dst, src } => {
                    self.state.set_d(dst, self.state.d(dst).wrapping_mul(self.state.d(src)));
                }
                Uop::SignExtendHalf { dst, src } => alu!(dst, self.state.logical(self.state.d(src) as i16 as u32)),
                Uop::ZeroExtendHalf { dst, src } => alu!(dst, self.state.logical(self.state.d(src) & 0xFFFF)),
                Uop::ZeroExtendByte { dst, src } => alu!(dst, self.state.logical(self.state.d(src) & 0xFF)),
                Uop::Alu2 { op, dst, src } => self.state.alu2(op, dst, src),
                Uop::ShiftRightArithmeticImm { dst, by } => {
                    alu!(dst, self.state.shifted((self.state.d(dst) as i32 >> (by & 31)) as u32));
                }
                Uop::ShiftRightImm { dst, by } => alu!(dst, self.state.shifted(self.state.d(dst) >> (by & 31))),
                Uop::ShiftLeftImm { dst, by } => alu!(dst, self.state.shifted(self.state.d(dst) << (by & 31))),
                Uop::BitImm { op, dst, bit } => self.state.bit_imm(op, dst, bit),
                Uop::DagAdd { dst, by } => self.state.set_i(dst, self.state.dag_add(dst, self.state.m(by))),
                Uop::DagAddBitReversed { dst, by } => {
                    self.state.set_i(dst, add_bit_reversed(self.state.i(dst), self.state.m(by)));
                }
                Uop::DagSub { dst, by } => self.state.set_i(dst, self.state.dag_sub(dst, self.state.m(by))),
                Uop::DagAddImm { dst, by } => self.state.set_i(dst, self.state.dag_add(dst, by.into())),
                Uop::DagSubImm { dst, by } => self.state.set_i(dst, self.state.dag_sub(dst, by.into())),
                Uop::Dsp(ref op) => self.state.dsp_op(op),

                Uop::LoadWord(mem) => load!(mem, 4, self.ea(mem), |x| x),
                Uop::LoadHalfZero(mem) => load!(mem, 2, self.ea(mem), |x| x),
                Uop::LoadHalfSign(mem) => load!(mem, 2, self.ea(mem), |x| x as i16 as u32),
                Uop::LoadByteZero(mem) => load!(mem, 1, self.ea(mem), |x| x),
                Uop::LoadByteSign(mem) => load!(mem, 1, self.ea(mem), |x| x as i8 as u32),
                Uop::StoreWord(mem) => store!(mem, 4, self.ea(mem)),
                Uop::StoreHalf(mem) => store!(mem, 2, self.ea(mem)),
                Uop::StoreByte(mem) => store!(mem, 1, self.ea(mem)),
                Uop::LoadWordPost(mem) => {
                    load!(mem, 4, self.state.p(mem.base), |x| x);
                    self.post(mem);
                }
                Uop::LoadHalfZeroPost(mem) => {
                    load!(mem, 2, self.state.p(mem.base), |x| x);
                    self.post(mem);
                }
                Uop::LoadHalfSignPost(mem) => {
                    load!(mem, 2, self.state.p(mem.base), |x| x as i16 as u32);
                    self.post(mem);
                }
                Uop::LoadByteZeroPost(mem) => {
                    load!(mem, 1, self.state.p(mem.base), |x| x);
                    self.post(mem);
                }
                Uop::LoadByteSignPost(mem) => {
                    load!(mem, 1, self.state.p(mem.base), |x| x as i8 as u32);
                    self.post(mem);
                }
                Uop::StoreWordPost(mem) => {
                    store!(mem, 4, self.state.p(mem.base));
                    self.post(mem);
                }
                Uop::StoreHalfPost(mem) => {
                    store!(mem, 2, self.state.p(mem.base));
                    self.post(mem);
                }
                Uop::StoreBytePost(mem) => {
                    store!(mem, 1, self.state.p(mem.base));
                    self.post(mem);
                }
                Uop::Load { what, reg, addr } => {
                    done!(self.slot_load::<P>(what, reg, addr, false)).commit(&mut self.state.r);
                }
                Uop::Store { what, reg, addr } => {
                    done!(self.slot_store::<P>(what, reg, addr)).commit(&mut self.state.r);
                }
                Uop::Link { frame } => {
                    let sp = self.state.p(Preg::Sp);
                    done!(self.store::<4, P>(sp.wrapping_sub(4), self.state.rets));
                    done!(self.store::<4, P>(sp.wrapping_sub(8), self.state.p(Preg::Fp)));
                    self.state.set_p(Preg::Fp, sp.wrapping_sub(8));
                    self.state.set_p(Preg::Sp, sp.wrapping_sub(8).wrapping_sub(frame));
                }
                Uop::Unlink => {
                    let fp = self.state.p(Preg::Fp);
                    let old_fp = done!(self.load::<4, P>(fp));
                    self.state.rets = done!(self.load::<4, P>(fp.wrapping_add(4)));
                    self.state.set_p(Preg::Fp, old_fp);
                    self.state.set_p(Preg::Sp, fp.wrapping_add(8));
                }
                Uop::Push(reg) => done!(self.push::<P>(self.state.r[reg.index()])),
                Uop::PushRets => done!(self.push::<P>(self.state.rets)),
                Uop::PopRets => {
                    let sp = self.state.p(Preg::Sp);
                    self.state.rets = done!(self.load::<4, P>(sp));
                    self.state.set_p(Preg::Sp, sp.wrapping_add(4));
                }
                Uop::PushReg(reg) => {
                    let value = done!(self.read_reg(reg));
                    done!(self.push::<P>(value));
                }
                Uop::PopReg(reg) => {
                    let sp = self.state.p(Preg::Sp);
                    let value = done!(self.load::<4, P>(sp));
                    done!(self.write_reg(reg, value));
                    self.state.set_p(Preg::Sp, sp.wrapping_add(4));
                }
                Uop::PushMultiple { first_d, first_p } => done!(self.push_multiple::<P>(first_d, first_p)),
                Uop::PopMultiple { first_d, first_p } => done!(self.pop_multiple::<P>(first_d, first_p)),
                Uop::Bundle(which) => {
                    if let Some(bundle) = bundles.get(which as usize) {
                        done!(self.bundle::<P>(bundle));
                    }
                }
            }
        }
        Exit::Fall
    }

    /// Where a jump goes must be an instruction's address; otherwise the jump itself is at fault.
    #[inline(always)]
    fn jump_target<P: Path>(&mut self, target: u32) -> Result<(), Fault> {
        if !P::FULL && self.mem.is_plain_code(target) {
            Ok(())
        } else if P::FULL {
            self.check_fetch(target)
        } else {
            Err(Fault::Slow)
        }
    }

    fn cc_bit(&mut self, op: CcBitOp, bit: u8, to_cc: bool) {
        let mask = 1u32 << (bit & 31);
        let (flag, cc) = (self.state.astat() & mask != 0, self.state.cc);
        let (old, new) = if to_cc { (cc, flag) } else { (flag, cc) };
        let result = match op {
            CcBitOp::Assign => new,
            CcBitOp::Or => old | new,
            CcBitOp::And => old & new,
            CcBitOp::Xor => old ^ new,
        };
        if to_cc {
            self.state.cc = result;
        } else {
            self.state.set_flags(mask, astat::when(result, mask));
        }
    }

    fn push<P: Path>(&mut self, value: u32) -> Result<(), Fault> {
        let sp = self.state.p(Preg::Sp).wrapping_sub(4);
        self.store::<4, P>(sp, value)?;
        self.state.set_p(Preg::Sp, sp);
        Ok(())
    }

    /// Data registers from `first_d` to R7, then pointers from `first_p` to P5. SP moves at the end, so that the
    /// instruction can be started again.
    fn push_multiple<P: Path>(&mut self, first_d: u8, first_p: u8) -> Result<(), Fault> {
        let mut sp = self.state.p(Preg::Sp);
        for index in (first_d..8).chain(first_p + 8..14) {
            sp = sp.wrapping_sub(4);
            self.store::<4, P>(sp, self.state.r[usize::from(index & 31)])?;
        }
        self.state.set_p(Preg::Sp, sp);
        Ok(())
    }

    fn pop_multiple<P: Path>(&mut self, first_d: u8, first_p: u8) -> Result<(), Fault> {
        let mut sp = self.state.p(Preg::Sp);
        for index in (first_p + 8..14).rev().chain((first_d..8).rev()) {
            self.state.r[usize::from(index & 31)] = self.load::<4, P>(sp)?;
            sp = sp.wrapping_add(4);
        }
        self.state.set_p(Preg::Sp, sp);
        Ok(())
    }
}

/// What a part of a bundle will write to the registers once all parts have run: what it loaded, and where its pointer
/// moved to.
#[derive(Clone, Copy)]
struct Writes {
    loaded: Option<(u8, u32)>,
    pointer: Option<(u8, u32)>,
}

impl Writes {
    #[inline(always)]
    fn commit(self, r: &mut [u32; 32]) {
        if let Some((reg, value)) = self.loaded {
            r[usize::from(reg & 31)] = value;
        }
        if let Some((reg, value)) = self.pointer {
            r[usize::from(reg & 31)] = value;
        }
    }
}

impl Core {
    /// The address of an access and where its pointer goes afterwards.
    #[inline(always)]
    fn address(&self, addr: Address, width: u32) -> (u32, Option<(u8, u32)>) {
        let state = &self.state;
        let moved = |base: Preg, to: u32| Some((8 + base as u8, to));
        match addr {
            Address::At(base) => (state.p(base), None),
            Address::Offset { base, offset, .. } => (state.p(base).wrapping_add_signed(offset), None),
            Address::PostIncrement(base) => (state.p(base), moved(base, state.p(base).wrapping_add(width))),
            Address::PostDecrement(base) => (state.p(base), moved(base, state.p(base).wrapping_sub(width))),
            Address::PostAdd { base, index } if base == index => (state.p(base), None),
            Address::PostAdd { base, index } => {
                (state.p(base), moved(base, state.p(base).wrapping_add(state.p(index))))
            }
            Address::DagAt(base) => (state.i(base), None),
            Address::DagPostIncrement(base) => (state.i(base), Some((16 + base as u8, state.dag_add(base, width)))),
            Address::DagPostDecrement(base) => (state.i(base), Some((16 + base as u8, state.dag_sub(base, width)))),
            Address::DagPostAdd { base, by } => {
                (state.i(base), Some((16 + base as u8, state.dag_add(base, state.m(by)))))
            }
        }
    }

    #[inline(always)]
    fn slot_load<P: Path>(
        &mut self,
        what: Load,
        reg: DPreg,
        addr: Address,
        skip_alignment: bool,
    ) -> Result<Writes, Fault> {
        let (at, pointer) = self.address(addr, load_width(what));
        let old = self.state.dp(reg);
        let value = match what {
            // Only whole words through an index register may be anywhere.
            Load::Word if skip_alignment => self.load::<4, P>(at & !3)?,
            Load::Word => self.load::<4, P>(at)?,
            Load::HalfZero => self.load::<2, P>(at)?,
            Load::HalfSign => self.load::<2, P>(at)? as i16 as u32,
            Load::ByteZero => self.load::<1, P>(at)?,
            Load::ByteSign => self.load::<1, P>(at)? as i8 as u32,
            Load::Lo => with_half(old, Half::Lo, self.load::<2, P>(at)? as u16),
            Load::Hi => with_half(old, Half::Hi, self.load::<2, P>(at)? as u16),
        };
        Ok(Writes { loaded: Some((reg as u8, value)), pointer })
    }

    #[inline(always)]
    fn slot_store<P: Path>(&mut self, what: Store, reg: DPreg, addr: Address) -> Result<Writes, Fault> {
        let (at, pointer) = self.address(addr, store_width(what));
        let value = self.state.dp(reg);
        match what {
            Store::Word => self.store::<4, P>(at, value)?,
            Store::Half | Store::Lo => self.store::<2, P>(at, value)?,
            Store::Hi => self.store::<2, P>(at, value >> 16)?,
            Store::Byte => self.store::<1, P>(at, value)?,
        }
        Ok(Writes { loaded: None, pointer })
    }

    #[inline(always)]
    fn slot<P: Path>(&mut self, slot: &Slot, skip_alignment: bool) -> Result<Writes, Fault> {
        let index = |dst: lancet_isa::blackfin::Ireg, value: u32| Writes {
            loaded: None,
            pointer: Some((16 + dst as u8, value)),
        };
        Ok(match *slot {
            Slot::Nop => Writes { loaded: None, pointer: None },
            Slot::Load { what, reg, addr } => {
                let through_index = !matches!(
                    addr,
                    Address::At(_)
                        | Address::PostIncrement(_)
                        | Address::PostDecrement(_)
                        | Address::Offset { .. }
                        | Address::PostAdd { .. }
                );
                self.slot_load::<P>(what, reg, addr, skip_alignment && through_index)?
            }
            Slot::Store { what, reg, addr } => self.slot_store::<P>(what, reg, addr)?,
            Slot::DagAdd { dst, by, bit_reversed: true } => {
                index(dst, add_bit_reversed(self.state.i(dst), self.state.m(by)))
            }
            Slot::DagAdd { dst, by, bit_reversed: false } => index(dst, self.state.dag_add(dst, self.state.m(by))),
            Slot::DagSub { dst, by } => index(dst, self.state.dag_sub(dst, self.state.m(by))),
            Slot::DagAddImm { dst, by } if by < 0 => index(dst, self.state.dag_sub(dst, u32::from(by.unsigned_abs()))),
            Slot::DagAddImm { dst, by } => index(dst, self.state.dag_add(dst, u32::from(by.unsigned_abs()))),
        })
    }

    /// All parts see the registers from before the bundle. The accesses go first, because only they can fail; the
    /// arithmetic runs before what they loaded is written.
    fn bundle<P: Path>(&mut self, bundle: &Bundle) -> Result<(), Fault> {
        let first = self.slot::<P>(&bundle.slots[0], bundle.skip_alignment)?;
        self.second_access = true;
        let second = self.slot::<P>(&bundle.slots[1], bundle.skip_alignment);
        self.second_access = false;
        let second = second?;
        self.state.dsp_op(&bundle.op);
        first.commit(&mut self.state.r);
        second.commit(&mut self.state.r);
        Ok(())
    }
}
