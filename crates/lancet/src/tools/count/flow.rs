//! A function as a circulation.
//!
//! The nodes are the blocks and one node for everything outside the function. Ball and Larus have ENTRY, EXIT and an
//! edge EXIT -> ENTRY that is always on the tree; here that edge is contracted, which is the same with one node and one
//! edge less. The *links* between the nodes are numbered in four runs:
//!
//! ```text
//! edges            block   -> block       Func::edges
//! entries          outside -> block       Func::entries
//! exits            block   -> outside     Func::exits
//! leaks            block   -> outside     one for each call block and each open block
//! ```
//!
//! A block whose count is derived from a register ([`Derived`](super::Derived)) is two nodes: all ways in lead to the
//! one, all ways out start at the other, and a link of its own between them has the count. These links stand between
//! the exits and the leaks, and the second nodes behind the node outside.
//!
//! A call that never returns leaves its block only by the leak, so its exit *is* the leak and no further one is made.
//!
//! Invariant: no block has two leaks, so the leaks, which must all be on the tree, never close a cycle.

use lancet_engine::program::{BlockId, Call, Edge, EdgeId, Exit, ExitKind, Func};

use super::{Derived, Slot, refill};

/// A block's index, [`FlowGraph::outside`], or above that the second node of a block.
pub(super) type Node = u32;

/// The parts of a [`Func`] that matter for flow.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape<'a> {
    pub blocks: usize,
    pub edges: &'a [Edge],
    pub entries: &'a [BlockId],
    /// By source block.
    pub exits: &'a [Exit],
    /// By block.
    pub calls: &'a [Call],
    /// See [`Placement::open`](super::Placement::open).
    pub open: &'a [BlockId],
    /// See [`Placement::joined`](super::Placement::joined).
    pub joined: &'a [EdgeId],
    /// See [`Placement::derived`](super::Placement::derived).
    pub derived: &'a [Derived],
}

impl<'a> Shape<'a> {
    pub fn of(func: &'a Func, open: &'a [BlockId], joined: &'a [EdgeId], derived: &'a [Derived]) -> Shape<'a> {
        Shape {
            blocks: func.blocks.len(),
            edges: &func.edges,
            entries: &func.entries,
            exits: &func.exits,
            calls: &func.calls,
            open,
            joined,
            derived,
        }
    }

    /// `open` in order, without what leaks anyway and what does not exist.
    pub fn tidy_open(&self) -> Vec<BlockId> {
        let needed = |id: &BlockId| {
            (id.0 as usize) < self.blocks && self.calls.binary_search_by_key(id, |call| call.block).is_err()
        };
        let mut open: Vec<BlockId> = self.open.iter().copied().filter(needed).collect();
        open.sort_unstable();
        open.dedup();
        open
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Role {
    /// May be on the tree or carry a counter.
    Free,
    /// Cannot carry a counter.
    Leak,
    /// Always carries a counter: control arrives, or goes, in a way that nothing else in the function tells of.
    Counted,
    /// A second mention of the same entry. Nothing flows.
    Absent,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Link {
    pub from: Node,
    pub to: Node,
    pub role: Role,
}

#[derive(Clone, Default, Debug)]
pub(super) struct FlowGraph {
    blocks: usize,
    edges: usize,
    entries: usize,
    exits: usize,
    /// Blocks with two nodes, in order.
    split: Vec<BlockId>,
    links: Vec<Link>,
    /// By index in `Func::calls`: the call's leak.
    call_leaks: Vec<u32>,
    /// Scratch. By block: control enters there.
    entered: Vec<bool>,
}

impl FlowGraph {
    #[cfg(test)]
    pub fn of(shape: &Shape<'_>) -> FlowGraph {
        let mut flow = FlowGraph::default();
        flow.rebuild(shape);
        flow
    }

    /// `shape.open` must be [tidy](Shape::tidy_open).
    pub fn rebuild(&mut self, shape: &Shape<'_>) {
        self.blocks = shape.blocks;
        self.edges = shape.edges.len();
        self.entries = shape.entries.len();
        self.exits = shape.exits.len();
        self.split.clear();
        self.split.extend(shape.derived.iter().map(|derived| derived.block));
        let outside = self.outside();
        let mut links = std::mem::take(&mut self.links);
        links.clear();
        links.extend(shape.edges.iter().map(|edge| Link {
            from: self.out_of(edge.from),
            to: edge.to.0,
            role: Role::Free,
        }));
        self.links = links;
        for edge in shape.joined {
            if let Some(link) = self.links.get_mut(edge.0 as usize) {
                link.role = Role::Counted;
            }
        }
        self.add_entries(shape.entries);
        for exit in shape.exits {
            let role = if exit.kind == ExitKind::Unresolved { Role::Counted } else { Role::Free };
            self.links.push(Link { from: self.out_of(exit.from), to: outside, role });
        }
        for i in 0..self.split.len() {
            let block = self.split[i];
            self.links.push(Link { from: block.0, to: self.out_of(block), role: Role::Counted });
        }
        self.add_leaks(shape);
    }

    /// The node that ways out of a block start at.
    pub fn out_of(&self, block: BlockId) -> Node {
        match self.split.binary_search(&block) {
            Ok(i) => self.outside() + 1 + i as Node,
            Err(_) => block.0,
        }
    }

    fn add_entries(&mut self, entries: &[BlockId]) {
        // With one entry none can be mentioned twice.
        refill(&mut self.entered, if entries.len() > 1 { self.blocks } else { 0 }, false);
        for (i, id) in entries.iter().enumerate() {
            let again = self.entered.get_mut(id.0 as usize).is_some_and(|entered| std::mem::replace(entered, true));
            let role = match i {
                _ if again => Role::Absent,
                0 => Role::Free,
                _ => Role::Counted,
            };
            self.links.push(Link { from: self.outside(), to: id.0, role });
        }
    }

    fn add_leaks(&mut self, shape: &Shape<'_>) {
        let first_exit = self.edges + self.entries;
        let mut exits = shape.exits.iter().enumerate().filter(|(_, exit)| exit.kind == ExitKind::NoReturn).peekable();
        self.call_leaks.clear();
        for call in shape.calls {
            while exits.next_if(|(_, exit)| exit.from < call.block).is_some() {}
            let leak = match exits.next_if(|(_, exit)| exit.from == call.block) {
                Some((i, _)) => {
                    self.links[first_exit + i].role = Role::Leak;
                    first_exit + i
                }
                None => self.add_leak(call.block),
            };
            self.call_leaks.push(leak as u32);
        }
        for &block in shape.open {
            self.add_leak(block);
        }
    }

    fn add_leak(&mut self, block: BlockId) -> usize {
        self.links.push(Link { from: self.out_of(block), to: self.outside(), role: Role::Leak });
        self.links.len() - 1
    }

    pub fn outside(&self) -> Node {
        self.blocks as Node
    }

    pub fn nodes(&self) -> usize {
        self.blocks + 1 + self.split.len()
    }

    /// All nodes but the one outside.
    pub fn inner_nodes(&self) -> impl Iterator<Item = Node> + use<> {
        let outside = self.outside();
        (0..self.nodes() as Node).filter(move |node| *node != outside)
    }

    /// How many of the nodes, from the first, stand for blocks.
    pub fn blocks(&self) -> usize {
        self.blocks
    }

    /// The block of a node.
    pub fn block_of(&self, node: Node) -> Option<BlockId> {
        match node.checked_sub(self.outside() + 1) {
            Some(i) => self.split.get(i as usize).copied(),
            None => (node < self.outside()).then_some(BlockId(node)),
        }
    }

    pub fn links(&self) -> &[Link] {
        &self.links
    }

    /// The links of the edges.
    pub fn edges(&self) -> std::ops::Range<usize> {
        0..self.edges
    }

    pub fn entries(&self) -> std::ops::Range<usize> {
        self.edges..self.edges + self.entries
    }

    pub fn exits(&self) -> std::ops::Range<usize> {
        self.entries().end..self.entries().end + self.exits
    }

    fn splits(&self) -> std::ops::Range<usize> {
        self.exits().end..self.exits().end + self.split.len()
    }

    pub fn call_leaks(&self) -> &[u32] {
        &self.call_leaks
    }

    /// The leaks of the open blocks: the last of the links.
    pub fn open_leaks(&self, open: usize) -> std::ops::Range<usize> {
        self.links.len() - open..self.links.len()
    }

    /// What a counter on this link is called; none for a leak of its own.
    pub fn slot(&self, link: usize) -> Option<Slot> {
        if self.edges().contains(&link) {
            Some(Slot::Edge(EdgeId(link as u32)))
        } else if self.entries().contains(&link) {
            Some(Slot::Entry((link - self.entries().start) as u32))
        } else if self.exits().contains(&link) {
            Some(Slot::Exit((link - self.exits().start) as u32))
        } else if self.splits().contains(&link) {
            Some(Slot::Block(self.split[link - self.splits().start]))
        } else {
            None
        }
    }

    /// The link of a slot that may be of another function.
    pub fn link_of(&self, slot: Slot) -> Option<usize> {
        let (run, i) = match slot {
            Slot::Block(id) => (self.splits(), self.split.binary_search(&id).ok()? as u32),
            Slot::Edge(id) => (self.edges(), id.0),
            Slot::Entry(i) => (self.entries(), i),
            Slot::Exit(i) => (self.exits(), i),
        };
        let link = run.start + i as usize;
        run.contains(&link).then_some(link)
    }
}

/// How many ways lead into and out of each block. Leaks do not count: an increment behind a call needs no new block.
#[derive(Clone, Default, Debug)]
pub(super) struct Degrees {
    into: Vec<u32>,
    out: Vec<u32>,
}

impl Degrees {
    pub fn count(&mut self, flow: &FlowGraph) {
        for side in [&mut self.into, &mut self.out] {
            refill(side, flow.nodes(), 0);
            // Control comes from many places and goes to many.
            side[flow.outside() as usize] = 2;
        }
        for link in flow.links().iter().filter(|link| !matches!(link.role, Role::Leak | Role::Absent)) {
            self.out[link.from as usize] += 1;
            self.into[link.to as usize] += 1;
        }
    }

    /// A counter on such a link fits neither at the end of the one block nor at the start of the other: it needs a
    /// block of its own.
    pub fn is_critical(&self, link: &Link) -> bool {
        self.out[link.from as usize] > 1 && self.into[link.to as usize] > 1
    }
}
