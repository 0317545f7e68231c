//! The loop forest of any graph, reducible or not.
//!
//! A loop is a strongly connected part of the graph with a cycle in it. Its header is the node that the depth-first
//! search reached first. The loops nested in it are those of the part without the header. In a reducible graph
//! these are the natural loops, merged where they share a header. In an irreducible one, control can also enter at
//! other nodes than the header; the loop is marked and [`LoopForest::other_entries`] lists them.
//!
//! The construction is Tarjan's and Havlak's (TOPLAS 1997) in Ramalingam's almost linear form (TOPLAS 1999). Headers
//! are tried in reverse preorder, so inner loops first, and every loop found is collapsed into its header. To see
//! what a header `h` collects, two kinds of edges are enough besides its back edges: tree edges, and cross edges
//! `u -> v` whose ends have their nearest common ancestor at `h` or below. So each cross edge waits at that ancestor
//! and joins the list of whatever `v` has been collapsed into when the ancestor is tried. Forward edges run beside
//! tree edges and add nothing.
//!
//! Invariants: a parent's id is smaller than its children's; [`LoopForest::blocks`] of a loop are one slice, the
//! loop's own blocks (header first) before those of nested loops. Nodes that no entry reaches are in no loop and
//! make no loop irreducible.

use std::ops::Range;

use super::dfs::{Dfs, Number, find};
use super::graph::{Edge, Graph, Node, reset};

const NONE: u32 = u32::MAX;

/// A loop of a [`LoopForest`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LoopId(pub u32);

/// One loop. Its blocks and edges are with the forest: [`LoopForest::blocks`], [`LoopForest::back_edges`] and so on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loop {
    /// The node that stands for the loop; control enters there.
    pub header: Node,
    /// The loop around it.
    pub parent: Option<LoopId>,
    /// 1 for an outermost loop.
    pub depth: u32,
    /// Control can enter elsewhere than at the header.
    pub irreducible: bool,
    /// Where the loop's blocks stand in `LoopForest::blocks`.
    blocks: Range<u32>,
    /// How many of them, from the start, are in no nested loop.
    own: u32,
}

/// All loops of a graph, nested.
#[derive(Clone, Default, Debug)]
pub struct LoopForest {
    loops: Vec<Loop>,
    /// By node: the innermost loop, or `NONE`.
    innermost: Vec<u32>,
    /// The nodes that are in loops.
    blocks: Vec<Node>,
    /// By node: its place in `blocks`, or `NONE`.
    place: Vec<u32>,
    /// By node: reached by the search.
    reached: Vec<bool>,
    /// The function's entries, sorted.
    entries: Vec<Node>,
    scratch: Scratch,
}

/// By number, except the edges.
#[derive(Clone, Default, Debug)]
struct Scratch {
    link: Vec<Number>,
    /// The header whose loop collapsed the number; 0 for none.
    header: Vec<Number>,
    is_header: Vec<bool>,
    /// The cross edges, as a pool of lists: source, target, next.
    cross: Vec<(Number, Number, u32)>,
    /// Head of the list of edges that wait at this common ancestor.
    waiting: Vec<u32>,
    /// Head of the list of edges that lead into what is collapsed here.
    into: Vec<u32>,
    work: Vec<Number>,
    loop_of_header: Vec<u32>,
    next_free: Vec<u32>,
}

impl LoopForest {
    pub fn new(graph: &Graph, dfs: &Dfs) -> LoopForest {
        let mut forest = LoopForest::default();
        forest.compute(graph, dfs);
        forest
    }

    /// `dfs` must be a forward search of `graph`; its roots are the entries.
    pub fn compute(&mut self, graph: &Graph, dfs: &Dfs) {
        self.loops.clear();
        self.blocks.clear();
        reset(&mut self.innermost, graph.nodes(), NONE);
        reset(&mut self.place, graph.nodes(), NONE);
        // Most functions have no loop.
        if !has_back_edge(graph, dfs) {
            return;
        }
        self.scratch.find_cross_edges(graph, dfs);
        self.scratch.collapse(graph, dfs);
        self.number_loops(dfs);
        self.place_blocks(dfs);
        self.reached.clear();
        self.reached.extend((0..graph.nodes()).map(|n| dfs.reached(n as Node)));
        self.entries.clear();
        self.entries.extend_from_slice(dfs.roots());
        self.entries.sort_unstable();
        self.mark_irreducible(graph, dfs);
    }

    /// The results without the scratch space, to keep. A function without loops costs nothing.
    pub fn compact(&self) -> LoopForest {
        if self.loops.is_empty() {
            return LoopForest::default();
        }
        LoopForest {
            loops: self.loops.clone(),
            innermost: self.innermost.clone(),
            blocks: self.blocks.clone(),
            place: self.place.clone(),
            reached: self.reached.clone(),
            entries: self.entries.clone(),
            scratch: Scratch::default(),
        }
    }

    /// Gives out the ids by ascending header number, and every node its innermost loop.
    fn number_loops(&mut self, dfs: &Dfs) {
        let s = &mut self.scratch;
        reset(&mut s.loop_of_header, dfs.highest() as usize + 1, NONE);
        for number in 1..=dfs.highest() {
            let i = number as usize;
            let mut inside = s.loop_of_header[s.header[i] as usize];
            if s.is_header[i] {
                let parent = (inside != NONE).then_some(LoopId(inside));
                let depth = 1 + parent.map_or(0, |p| self.loops[p.0 as usize].depth);
                inside = self.loops.len() as u32;
                s.loop_of_header[i] = inside;
                let header = dfs.node(number);
                self.loops.push(Loop { header, parent, depth, irreducible: false, blocks: 0..0, own: 0 });
            }
            self.innermost[dfs.node(number) as usize] = inside;
        }
    }

    fn place_blocks(&mut self, dfs: &Dfs) {
        // Sizes first, from the inside out, in `blocks.end`.
        let in_loops = || dfs.preorder().iter().map(|&n| n as usize);
        for node in in_loops() {
            if self.innermost[node] != NONE {
                self.loops[self.innermost[node] as usize].own += 1;
            }
        }
        for id in (0..self.loops.len()).rev() {
            self.loops[id].blocks.end += self.loops[id].own;
            if let Some(parent) = self.loops[id].parent {
                self.loops[parent.0 as usize].blocks.end += self.loops[id].blocks.end;
            }
        }
        // Then each loop takes its slice out of its parent's, behind the parent's own blocks.
        let next_free = &mut self.scratch.next_free;
        next_free.clear();
        let mut outside = 0;
        for l in &mut self.loops {
            let (size, taken) = (l.blocks.end, l.parent.map_or(&mut outside, |p| &mut next_free[p.0 as usize]));
            l.blocks = *taken..*taken + size;
            *taken += size;
            next_free.push(l.blocks.start + l.own);
        }
        self.blocks.resize(outside as usize, NONE);
        for (free, l) in next_free.iter_mut().zip(&self.loops) {
            *free = l.blocks.start;
        }
        for node in in_loops() {
            if self.innermost[node] != NONE {
                let free = &mut next_free[self.innermost[node] as usize];
                self.place[node] = *free;
                self.blocks[*free as usize] = node as Node;
                *free += 1;
            }
        }
    }

    /// An edge that enters loops elsewhere than at their headers marks them all, from the innermost loop of its
    /// target outwards. `link` skips what is marked already.
    fn mark_irreducible(&mut self, graph: &Graph, dfs: &Dfs) {
        // Shifted by one, so that 0 is the end above the outermost loops.
        let mut link = std::mem::take(&mut self.scratch.link);
        link.clear();
        link.extend(0..=self.loops.len() as u32);
        for &to in dfs.preorder() {
            let inside = self.innermost[to as usize];
            if inside == NONE {
                continue;
            }
            let first = match &self.loops[inside as usize] {
                l if l.header == to => l.parent.map_or(0, |p| p.0 + 1),
                _ => inside + 1,
            };
            for &from in graph.predecessors(to) {
                if dfs.reached(from) {
                    self.mark_entered(&mut link, first, Some(from));
                }
            }
            if self.is_entry(to) {
                self.mark_entered(&mut link, first, None);
            }
        }
        self.scratch.link = link;
    }

    fn mark_entered(&mut self, link: &mut [u32], first: u32, from: Option<Node>) {
        let mut entered = find(link, first);
        while entered != 0 {
            let id = entered - 1;
            if from.is_some_and(|from| self.contains(LoopId(id), from)) {
                break;
            }
            let l = &mut self.loops[id as usize];
            l.irreducible = true;
            link[entered as usize] = l.parent.map_or(0, |p| p.0 + 1);
            entered = find(link, entered);
        }
    }

    pub fn len(&self) -> usize {
        self.loops.len()
    }

    pub fn is_empty(&self) -> bool {
        self.loops.is_empty()
    }

    pub fn get(&self, id: LoopId) -> &Loop {
        &self.loops[id.0 as usize]
    }

    /// All loops, parents before children.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (LoopId, &Loop)> {
        self.loops.iter().enumerate().map(|(id, l)| (LoopId(id as u32), l))
    }

    pub fn innermost(&self, node: Node) -> Option<LoopId> {
        self.innermost.get(node as usize).copied().filter(|&id| id != NONE).map(LoopId)
    }

    /// How many loops the node is in.
    pub fn depth(&self, node: Node) -> u32 {
        self.innermost(node).map_or(0, |id| self.get(id).depth)
    }

    /// The loop's blocks, those of nested loops included. The header is the first.
    pub fn blocks(&self, id: LoopId) -> &[Node] {
        let Range { start, end } = self.get(id).blocks;
        &self.blocks[start as usize..end as usize]
    }

    /// The loop's blocks that are in no nested loop. The header is the first.
    pub fn own_blocks(&self, id: LoopId) -> &[Node] {
        &self.blocks(id)[..self.get(id).own as usize]
    }

    pub fn contains(&self, id: LoopId, node: Node) -> bool {
        self.get(id).blocks.contains(&self.place[node as usize])
    }

    /// Is `inner` nested in `outer`, at any depth, or the same loop?
    pub fn encloses(&self, outer: LoopId, inner: LoopId) -> bool {
        self.contains(outer, self.get(inner).header)
    }

    /// Edges from inside the loop to its header. `graph` is the one the forest was computed from, here and below.
    pub fn back_edges<'a>(&'a self, graph: &'a Graph, id: LoopId) -> impl Iterator<Item = Edge> + 'a {
        graph.in_edges(self.get(id).header).filter(move |e| self.contains(id, e.from))
    }

    /// Edges from outside, to the header or elsewhere. Being an entry of the function is no edge.
    pub fn entry_edges<'a>(&'a self, graph: &'a Graph, id: LoopId) -> impl Iterator<Item = Edge> + 'a {
        let into = self.blocks(id).iter().flat_map(|&node| graph.in_edges(node));
        into.filter(move |e| self.reached[e.from as usize] && !self.contains(id, e.from))
    }

    pub fn exit_edges<'a>(&'a self, graph: &'a Graph, id: LoopId) -> impl Iterator<Item = Edge> + 'a {
        let out = self.blocks(id).iter().flat_map(|&node| graph.out_edges(node));
        out.filter(move |e| !self.contains(id, e.to))
    }

    /// The blocks other than the header at which control can enter: none unless the loop is irreducible.
    ///
    /// They are looked up, not stored: nested irreducible loops share entries, and a table of them all could be
    /// quadratic in the size of the function.
    pub fn other_entries<'a>(&'a self, graph: &'a Graph, id: LoopId) -> impl Iterator<Item = Node> + 'a {
        let candidates: &[Node] = if self.get(id).irreducible { &self.blocks(id)[1..] } else { &[] };
        let entered = move |from: Node| self.reached[from as usize] && !self.contains(id, from);
        candidates
            .iter()
            .copied()
            .filter(move |&node| self.is_entry(node) || graph.predecessors(node).iter().any(|&from| entered(from)))
    }

    fn is_entry(&self, node: Node) -> bool {
        self.entries.binary_search(&node).is_ok()
    }
}

fn has_back_edge(graph: &Graph, dfs: &Dfs) -> bool {
    dfs.preorder().iter().zip(1..).any(|(&node, number)| {
        let mut successors = graph.successors(node).iter();
        successors.any(|&to| dfs.is_ancestor(dfs.number(to), number))
    })
}

impl Scratch {
    /// Puts every cross edge on the list of its ends' nearest common ancestor.
    ///
    /// Walking the numbers upwards replays the search. Each finished node is linked to its tree parent, so the
    /// representative of the target of a cross edge is its nearest ancestor that is still open: the common one.
    fn find_cross_edges(&mut self, graph: &Graph, dfs: &Dfs) {
        let numbers = dfs.highest() as usize + 1;
        self.link.clear();
        self.link.extend(0..numbers as Number);
        self.cross.clear();
        reset(&mut self.waiting, numbers, NONE);
        for from in 1..=dfs.highest() {
            let (mut finished, open) = (from - 1, dfs.parent(from));
            while finished != open {
                let parent = dfs.parent(finished);
                self.link[finished as usize] = parent;
                finished = parent;
            }
            for &to in graph.successors(dfs.node(from)) {
                let to = dfs.number(to);
                if to < from && !dfs.is_ancestor(to, from) {
                    let ancestor = find(&mut self.link, to) as usize;
                    let next = std::mem::replace(&mut self.waiting[ancestor], self.cross.len() as u32);
                    self.cross.push((from, to, next));
                }
            }
        }
    }

    /// Finds `header` and `is_header`.
    fn collapse(&mut self, graph: &Graph, dfs: &Dfs) {
        let numbers = dfs.highest() as usize + 1;
        self.link.clear();
        self.link.extend(0..numbers as Number);
        reset(&mut self.header, numbers, 0);
        reset(&mut self.is_header, numbers, false);
        reset(&mut self.into, numbers, NONE);
        for h in (1..=dfs.highest()).rev() {
            let mut edge = self.waiting[h as usize];
            while edge != NONE {
                let (_, to, next) = self.cross[edge as usize];
                let collapsed = find(&mut self.link, to) as usize;
                self.cross[edge as usize].2 = std::mem::replace(&mut self.into[collapsed], edge);
                edge = next;
            }
            for &from in graph.predecessors(dfs.node(h)) {
                let from = dfs.number(from);
                if dfs.is_ancestor(h, from) {
                    self.is_header[h as usize] = true;
                    self.collect(from, h);
                }
            }
            while let Some(x) = self.work.pop() {
                self.collect(dfs.parent(x), h);
                let mut edge = self.into[x as usize];
                while edge != NONE {
                    let (from, _, next) = self.cross[edge as usize];
                    self.collect(from, h);
                    edge = next;
                }
            }
        }
    }

    /// What `x` was collapsed into is part of `h`'s loop.
    fn collect(&mut self, x: Number, h: Number) {
        let x = find(&mut self.link, x);
        if x != h {
            self.link[x as usize] = h;
            self.header[x as usize] = h;
            self.work.push(x);
        }
    }
}
