//! Dominators and post-dominators.
//!
//! `a` dominates `b` if every path from an entry to `b` passes `a`. The algorithm is Lengauer and Tarjan's with
//! simple path compression (TOPLAS 1979): O(m log n) whatever the graph. The iterative algorithms that are simpler
//! go quadratic on a long chain of tests that all branch to one error exit, which is a shape that compilers do emit.
//!
//! Several entries are one virtual root above them all, so a node reached from two entries may have no immediate
//! dominator of its own. Nodes that no entry reaches are dominated by nothing and dominate nothing.

use super::dfs::{Dfs, Number};
use super::graph::{Graph, Node, View, reset};

const NONE: u32 = u32::MAX;

#[derive(Clone, Default, Debug)]
pub struct Dominators {
    /// By node; `NONE` below the virtual root and where no entry leads.
    idom: Vec<Node>,
    /// By node: its interval in a preorder of the dominator tree, empty where no entry leads. A node dominates
    /// exactly the nodes whose first number lies in its interval.
    interval: Vec<(u32, u32)>,
    scratch: Scratch,
}

/// All by number.
#[derive(Clone, Default, Debug)]
struct Scratch {
    /// The virtual root leads here.
    entry: Vec<bool>,
    /// The semidominator of a processed node; before that, the node itself.
    semi: Vec<Number>,
    idom: Vec<Number>,
    /// The forest of processed nodes: `NONE` for its roots.
    ancestor: Vec<u32>,
    /// Where the smallest semidominator was on the compressed path above.
    label: Vec<Number>,
    /// Lists of the nodes with a given semidominator.
    bucket: Vec<u32>,
    bucket_next: Vec<u32>,
    path: Vec<Number>,
    size: Vec<u32>,
    next_free: Vec<u32>,
}

impl Dominators {
    pub fn new(view: View<'_>, dfs: &Dfs) -> Dominators {
        let mut dominators = Dominators::default();
        dominators.compute(view, dfs);
        dominators
    }

    /// `dfs` must be a search of the same view; its roots are the entries.
    pub fn compute(&mut self, view: View<'_>, dfs: &Dfs) {
        let s = &mut self.scratch;
        s.immediate_dominators(view, dfs);
        s.tree_sizes(dfs.highest());

        reset(&mut self.idom, view.nodes(), NONE);
        reset(&mut self.interval, view.nodes(), (1, 0));
        reset(&mut s.next_free, dfs.highest() as usize + 1, 0);
        // Parents come before children in the numbering, so each takes its interval out of its parent's.
        s.next_free[0] = 1;
        for number in 1..=dfs.highest() {
            let (node, parent) = (dfs.node(number) as usize, s.idom[number as usize]);
            if parent != 0 {
                self.idom[node] = dfs.node(parent);
            }
            let first = s.next_free[parent as usize];
            let size = s.size[number as usize];
            s.next_free[parent as usize] += size;
            s.next_free[number as usize] = first + 1;
            self.interval[node] = (first, first + size - 1);
        }
    }

    /// `None` for a node that only the virtual root dominates, and for one that no entry reaches.
    pub fn idom(&self, node: Node) -> Option<Node> {
        Some(self.idom[node as usize]).filter(|&idom| idom != NONE)
    }

    /// Every reached node dominates itself.
    pub fn dominates(&self, above: Node, below: Node) -> bool {
        let (first, last) = self.interval[above as usize];
        let (at, end) = self.interval[below as usize];
        at <= end && first <= at && at <= last
    }

    pub fn reached(&self, node: Node) -> bool {
        let (first, last) = self.interval[node as usize];
        first <= last
    }

    /// The node's immediate dominator, that one's, and so on up to an entry.
    pub fn strict_dominators(&self, node: Node) -> impl Iterator<Item = Node> + '_ {
        std::iter::successors(self.idom(node), |&n| self.idom(n))
    }
}

impl Scratch {
    fn immediate_dominators(&mut self, view: View<'_>, dfs: &Dfs) {
        let numbers = dfs.highest() as usize + 1;
        self.semi.clear();
        self.semi.extend(0..numbers as Number);
        self.label.clear();
        self.label.extend(0..numbers as Number);
        reset(&mut self.idom, numbers, 0);
        reset(&mut self.ancestor, numbers, NONE);
        reset(&mut self.bucket, numbers, NONE);
        reset(&mut self.bucket_next, numbers, NONE);
        reset(&mut self.entry, numbers, false);
        for &root in dfs.roots() {
            self.entry[dfs.number(root) as usize] = true;
        }
        for w in (1..=dfs.highest()).rev() {
            let mut semi = if self.entry[w as usize] { 0 } else { w };
            for &before in view.previous(dfs.node(w)) {
                let v = dfs.number(before);
                if v != 0 {
                    let least = self.least_semi_above(v);
                    semi = semi.min(self.semi[least as usize]);
                }
            }
            self.semi[w as usize] = semi;
            self.bucket_next[w as usize] = self.bucket[semi as usize];
            self.bucket[semi as usize] = w;

            let parent = dfs.parent(w);
            self.ancestor[w as usize] = parent;
            let mut waiting = std::mem::replace(&mut self.bucket[parent as usize], NONE);
            while waiting != NONE {
                let least = self.least_semi_above(waiting);
                let deferred = self.semi[least as usize] < self.semi[waiting as usize];
                self.idom[waiting as usize] = if deferred { least } else { parent };
                waiting = self.bucket_next[waiting as usize];
            }
        }
        for w in 1..numbers {
            if self.idom[w] != self.semi[w] {
                self.idom[w] = self.idom[self.idom[w] as usize];
            }
        }
    }

    /// The node with the smallest semidominator on the path from `v` up to, not including, the root of its tree in
    /// the forest of processed nodes; `v` itself if it is a root. Compresses the path.
    fn least_semi_above(&mut self, v: Number) -> Number {
        let above = self.ancestor[v as usize];
        if above == NONE {
            return v;
        }
        let mut x = v;
        while self.ancestor[self.ancestor[x as usize] as usize] != NONE {
            self.path.push(x);
            x = self.ancestor[x as usize];
        }
        let root = self.ancestor[x as usize];
        while let Some(y) = self.path.pop() {
            let (best, own) = (self.label[x as usize], self.label[y as usize]);
            if self.semi[best as usize] < self.semi[own as usize] {
                self.label[y as usize] = best;
            }
            self.ancestor[y as usize] = root;
            x = y;
        }
        self.label[v as usize]
    }

    fn tree_sizes(&mut self, highest: Number) {
        reset(&mut self.size, highest as usize + 1, 1);
        for w in (1..=highest as usize).rev() {
            self.size[self.idom[w] as usize] += self.size[w];
        }
    }
}

/// `a` post-dominates `b` if every path from `b` to an exit passes `a`.
///
/// A part of the graph that never leaves (an endless loop) reaches no exit. It is given one: the first of its nodes
/// to finish in the forward search counts as an exit, again until every node that an entry reaches also reaches
/// an exit.
#[derive(Clone, Default, Debug)]
pub struct PostDominators {
    dominators: Dominators,
    backward: Dfs,
}

impl PostDominators {
    /// `exits` may name nodes that have successors too, such as a conditional jump out of the function. Nodes
    /// without a successor need not be named.
    pub fn compute(&mut self, graph: &Graph, forward: &Dfs, exits: &[Node]) {
        let view = graph.backward();
        self.backward.compute(view, exits);
        for &node in forward.postorder() {
            if !self.backward.reached(node) && graph.successors(node).is_empty() {
                self.backward.grow(view, node);
            }
        }
        for &node in forward.postorder() {
            if !self.backward.reached(node) {
                self.backward.grow(view, node);
            }
        }
        self.dominators.compute(view, &self.backward);
    }

    /// Every node that reaches an exit post-dominates itself.
    pub fn dominates(&self, later: Node, earlier: Node) -> bool {
        self.dominators.dominates(later, earlier)
    }

    /// `None` for a node behind which paths go to different exits.
    pub fn idom(&self, node: Node) -> Option<Node> {
        self.dominators.idom(node)
    }

    /// The exits that were used: those given and those found.
    pub fn exits(&self) -> &[Node] {
        self.backward.roots()
    }
}
