//! What most tools need: `use lancet::prelude::*;`

pub use crate::image::{Image, ImageError};
pub use crate::isa::{Facts, Insn, Reg, RegSet, Svma};
pub use crate::program::{Block, BlockId, Call, Edge, EdgeId, EdgeKind, Exit, ExitKind, Func, FuncId};
pub use crate::program::{JumpTable, Loop, LoopForest, LoopId, Program};
pub use crate::{Error, Object, Opened, Subject, lookup, names};
