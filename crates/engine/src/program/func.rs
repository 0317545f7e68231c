//! What is known of one function.

use lancet_isa::{RegSet, Svma, Target};

use super::graph::Graph;
use super::loops::LoopForest;
use super::table::JumpTable;

/// An index into [`Program::funcs`](super::Program::funcs).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FuncId(pub u32);

/// An index into [`Func::blocks`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct BlockId(pub u32);

/// An index into [`Func::edges`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct EdgeId(pub u32);

/// What first said that a function starts here, from the most to the least trusted.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum FoundBy {
    Symbol,
    /// An entry of the unwind table.
    Fde,
    /// The program's entry point.
    Entry,
    /// A table of initializers or finalizers.
    Init,
    /// A relocation that names it as the resolver of an indirect function.
    Ifunc,
    /// It is a stub that leads to another object.
    Plt,
    Call,
    /// A jump from another function.
    Jump,
    /// A pointer to code that nothing else covers.
    Pointer,
}

/// A contiguous piece of a function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Part {
    pub start: Svma,
    pub end: Svma,
}

impl Part {
    pub fn contains(&self, at: Svma) -> bool {
        at >= self.start && at < self.end
    }

    pub fn size(&self) -> u64 {
        self.end - self.start
    }
}

/// Instructions that run one after the other. A call ends a block.
#[derive(Clone, Copy, Debug)]
pub struct Block {
    pub start: Svma,
    pub len: u32,
    /// How many instructions.
    pub insns: u32,
    pub(super) first_edge: u32,
}

impl Block {
    pub fn end(&self) -> Svma {
        self.start + u64::from(self.len)
    }

    /// The number of the first of the edges out of it, or of where they would be.
    pub fn first_edge(&self) -> u32 {
        self.first_edge
    }
}

/// Control may go from the end of one block to the start of another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Edge {
    pub from: BlockId,
    pub to: BlockId,
    pub kind: EdgeKind,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum EdgeKind {
    /// To the next instruction; also where a branch is not taken.
    Fall,
    Jump,
    /// A conditional branch that is taken.
    Taken,
    /// From a call to where it returns.
    CallReturn,
    /// Through a jump table.
    Table,
    /// A hardware loop goes round.
    Repeat,
}

/// Control leaves the function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Exit {
    pub from: BlockId,
    pub kind: ExitKind,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ExitKind {
    Return,
    /// To another function that returns in this one's place.
    TailCall(Target),
    /// Runs on into another function.
    RunsInto(Svma),
    /// A call that does not return.
    NoReturn,
    /// An instruction that traps. If a handler may pass it, what is behind it is one of the function's
    /// [entries](Func::entries).
    Stop,
    /// An indirect jump that could not be resolved.
    Unresolved,
    /// Into bytes that are no instruction.
    Bad(Svma),
}

/// A block that ends in a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Call {
    pub block: BlockId,
    pub to: Target,
    pub returns: bool,
}

/// Why a function is not fully understood.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Problem {
    #[error("the targets of the indirect jump at {at} are not known")]
    UnresolvedJump { at: Svma },
    #[error("control reaches {at}, where no instruction decodes")]
    BadInstruction { at: Svma },
    #[error("control runs past the end of the code at {at}")]
    RunsOut { at: Svma },
    #[error("it calls {to} in its own middle, which is not followed")]
    CallsMiddle { to: Svma },
    #[error("the jump table at {table} may go on: what would be its next entry leads to {to}, outside of the function")]
    OpenTable { table: Svma, to: Svma },
}

/// One function: its blocks, and how control runs between them, in and out.
///
/// Blocks, edges, exits and calls are sorted, so that what belongs to a block is found by its id: see
/// [`successors`](Func::successors), [`exits_of`](Func::exits_of), [`call_of`](Func::call_of). In
/// [`loops`](Func::loops) and in [`graph`](Func::graph) a node is the number in a [`BlockId`].
#[derive(Debug)]
pub struct Func {
    pub entry: Svma,
    pub found_by: FoundBy,
    /// By address; the first that contains the entry is the main one.
    pub parts: Box<[Part]>,
    /// By address.
    pub blocks: Box<[Block]>,
    /// By source block.
    pub edges: Box<[Edge]>,
    /// By source block.
    pub exits: Box<[Exit]>,
    /// By block.
    pub calls: Box<[Call]>,
    /// Where control enters: the entry first, then landing pads, entries from other functions, and code to which nothing leads
    /// but a handler that passes the trap before it.
    pub entries: Box<[BlockId]>,
    pub tables: Box<[JumpTable]>,
    pub loops: LoopForest,
    pub problems: Box<[Problem]>,
    pub never_returns: bool,
    /// Registers that its own instructions may change.
    pub changes: RegSet,
    pub(super) live_in: Box<[RegSet]>,
    pub(super) live_out: Box<[RegSet]>,
}

impl Func {
    /// Bytes of all parts.
    pub fn size(&self) -> u64 {
        self.parts.iter().map(Part::size).sum()
    }

    pub fn block(&self, id: BlockId) -> &Block {
        &self.blocks[id.0 as usize]
    }

    pub fn block_ids(&self) -> impl ExactSizeIterator<Item = BlockId> + use<> {
        (0..self.blocks.len() as u32).map(BlockId)
    }

    /// The block that starts at an address.
    pub fn block_starting_at(&self, at: Svma) -> Option<BlockId> {
        self.blocks.binary_search_by_key(&at, |block| block.start).ok().map(|i| BlockId(i as u32))
    }

    /// The block that an address is in.
    pub fn block_at(&self, at: Svma) -> Option<BlockId> {
        let i = self.blocks.partition_point(|block| block.start <= at).checked_sub(1)?;
        (at < self.blocks[i].end()).then_some(BlockId(i as u32))
    }

    /// The edges out of a block.
    pub fn successors(&self, block: BlockId) -> &[Edge] {
        let i = block.0 as usize;
        let end = self.blocks.get(i + 1).map_or(self.edges.len(), |next| next.first_edge as usize);
        &self.edges[self.blocks[i].first_edge as usize..end]
    }

    /// Its blocks and edges as a graph with the same numbers, as the loop forest's questions need it.
    pub fn graph(&self) -> Graph {
        let pairs: Vec<(u32, u32)> = self.edges.iter().map(|edge| (edge.from.0, edge.to.0)).collect();
        Graph::new(self.blocks.len(), &pairs)
    }

    /// The call that ends a block.
    pub fn call_of(&self, block: BlockId) -> Option<&Call> {
        self.calls.binary_search_by_key(&block, |call| call.block).ok().map(|i| &self.calls[i])
    }

    /// The ways out of the function from a block.
    pub fn exits_of(&self, block: BlockId) -> impl Iterator<Item = &Exit> {
        let first = self.exits.partition_point(|exit| exit.from < block);
        self.exits[first..].iter().take_while(move |exit| exit.from == block)
    }

    /// Registers and flags that hold a value somebody may still read, at the start of a block.
    pub fn live_in(&self, block: BlockId) -> RegSet {
        self.live_in[block.0 as usize]
    }

    /// The same, at its end.
    pub fn live_out(&self, block: BlockId) -> RegSet {
        self.live_out[block.0 as usize]
    }

    /// All of its control flow is known.
    pub fn is_complete(&self) -> bool {
        self.problems.is_empty()
    }
}
