//! A user's analysis: a relocatable Blackfin object that comes along with an edited program.
//!
//! Code goes to code memory and everything else to data memory, which on the chip are different memories. The object must
//! be complete by itself: it may not refer to the program, whose state it would disturb.

use std::sync::Arc;

use lancet_engine::layout::inplace::{Payload, PlacedPayload};
use lancet_engine::load::{LoadError, Module};
use lancet_isa::blackfin::EncodeError;
use lancet_isa::{Avma, Isa};

/// An analysis that needs more than this, of code or of data, has no place on the chip nor beside it.
const LARGEST: u64 = 1 << 20;

/// The words in front of the data that switch instrumentation on and off use.
pub const SWITCH_BYTES: u32 = 16;

pub struct Analysis {
    module: Arc<Module>,
    /// Where each routine is in the module's code.
    routines: Vec<u64>,
    /// What the switch says at first.
    starts_on: bool,
}

impl Analysis {
    /// An object whose calls are on at first or not, with its routines in the order of their numbers.
    pub fn new(module: Arc<Module>, routines: Vec<u64>, starts_on: bool, isa: &dyn Isa) -> Result<Analysis, LoadError> {
        let unusable = |what: &str| LoadError::Unusable { name: module.name().to_owned(), what: what.to_owned() };
        module.must_be_for(isa)?;
        let (code, data) = module.size();
        if code > LARGEST || data > LARGEST {
            return Err(unusable("is too large to come along with a program"));
        }
        if module.is_apart() {
            return Err(unusable("is no object that can be linked"));
        }
        // That it refers to nothing outside does not depend on where it stands.
        module.link(Avma(0), Avma(LARGEST), &|_| None)?;
        Ok(Analysis { module, routines, starts_on })
    }
}

impl Payload for Analysis {
    fn data_bytes(&self) -> u32 {
        SWITCH_BYTES + self.module.size().1 as u32
    }

    fn place(&self, code_at: u32, data_at: u32) -> Result<PlacedPayload, EncodeError> {
        let own_data = Avma((data_at + SWITCH_BYTES).into());
        let linked = self.module.link(Avma(code_at.into()), own_data, &|_| None).map_err(|error| match error {
            LoadError::TooFar { from, to, .. } => EncodeError::OutOfReach { at: from.0 as u32, target: to.0 as u32 },
            _ => EncodeError::OutOfReach { at: code_at, target: data_at },
        })?;
        let mut data = vec![0; SWITCH_BYTES as usize];
        data[0] = self.starts_on.into();
        data.extend(linked.data);
        let routines = self.routines.iter().map(|offset| code_at.wrapping_add(*offset as u32)).collect();
        Ok(PlacedPayload { code: linked.code, routines, data })
    }
}
