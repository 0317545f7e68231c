//! The optimizing tool: clock and voltage go down where a chosen phase starts, and up where another one does.
//!
//! Only points that can follow a chosen phase need to bring the speed back. Whether there is anything to change is tested
//! in place; the routine that changes it sleeps until the regulator has settled.

use lancet_engine::layout::inplace::{Deed, Environment, Order, Payload, Place, PlacedPayload};
use lancet_engine::program::Program;
use lancet_isa::blackfin::{Address, AllReg, Assembler, Compare, DPreg, EncodeError, Op, Preg, ReturnFrom, Store};

use super::Profile;
use crate::{Error, dsp};

const FAST: u8 = 0;
const SLOW: u8 = 1;

const PLL_DIV: u32 = 0xFFC0_0004;
const VR_CTL: u32 = 0xFFC0_0008;
/// PLL_DIV and VR_CTL of the paper's Table 2: 500 MHz at 1.20 V, 250 MHz at 1.00 V.
const SETTINGS: [(u32, u32); 2] = [(0x0004, 0x40DB), (0x0014, 0x409B)];

/// The program with changes of speed around the phases that start at the chosen points.
pub fn slow_down(program: &Program, name: &str, profile: &Profile, chosen: &[usize]) -> Result<Vec<u8>, Error> {
    let is_chosen = |point: &usize| chosen.contains(point);
    let mut points = Vec::new();
    for (i, &at) in profile.points.iter().enumerate() {
        let follows = profile.phases.iter().any(|phase| phase.end == i && is_chosen(&phase.start));
        let speed = if is_chosen(&i) { SLOW } else { FAST };
        if is_chosen(&i) || follows {
            points.push((Place::Before(at), Deed::Switch { routine: 0, argument: speed.into(), unless: speed }));
        }
    }
    let order = Order { points: &points, environment: Environment::Operating, ..Order::new(&Regulator) };
    Ok(dsp::edit(program, name, &order)?.1)
}

struct Regulator;

impl Payload for Regulator {
    /// The speed, and two words that the test in place uses.
    fn data_bytes(&self) -> u32 {
        16
    }

    /// R0 is the new speed. The voltage goes up before the clock and down behind it.
    fn place(&self, code_at: u32, data_at: u32) -> Result<PlacedPayload, EncodeError> {
        let mut out = Assembler::new(code_at);
        out.load_address(AllReg::P0, data_at)?;
        store(&mut out, DPreg::R0)?;
        out.op(Op::CompareImm { relation: Compare::Equal, left: DPreg::R0, right: SLOW as i8 })?;
        let [fast, slow] = SETTINGS;
        let mut up = Assembler::new(out.here() + 2);
        set(&mut up, VR_CTL, fast.1)?;
        up.op(Op::Idle)?;
        set(&mut up, PLL_DIV, fast.0)?;
        up.op(Op::Return(ReturnFrom::Subroutine))?;
        out.op(Op::Branch { cc: true, predicted: false, target: up.here() })?.raw(&up.finish());
        set(&mut out, PLL_DIV, slow.0)?;
        set(&mut out, VR_CTL, slow.1)?;
        out.op(Op::Idle)?.op(Op::Return(ReturnFrom::Subroutine))?;
        Ok(PlacedPayload { code: out.finish(), routines: vec![code_at], data: Vec::new() })
    }
}

/// `[register] = value`
fn set(out: &mut Assembler, register: u32, value: u32) -> Result<(), EncodeError> {
    out.load_address(AllReg::P0, register)?.load(AllReg::R1, value)?;
    store(out, DPreg::R1)
}

fn store(out: &mut Assembler, reg: DPreg) -> Result<(), EncodeError> {
    out.op(Op::Store { what: Store::Word, reg, addr: Address::At(Preg::P0) }).map(|_| ())
}
