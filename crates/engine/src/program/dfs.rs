//! Depth-first search, which the other analyses stand on.
//!
//! A function may have several entries, so the search starts from a list of roots. All trees hang below one
//! *virtual root* that has no node. Visited nodes are numbered in preorder from 1; number 0 is the virtual root.
//! Dominators and loops are computed on these numbers, because an ancestor's number is always the smaller one and
//! a subtree is an interval of numbers.
//!
//! The search keeps its own stack: a function with a million blocks in a row must not overflow the real one.

use super::graph::{Node, View, reset};

/// A place in preorder; see [`Dfs`]. 0 is the virtual root.
pub(super) type Number = u32;

#[derive(Clone, Default, Debug)]
pub struct Dfs {
    /// By node: its number, 0 where the search did not come.
    number: Vec<Number>,
    /// By number: the node. What stands at 0 means nothing.
    node: Vec<Node>,
    /// By number: the number of the tree parent.
    parent: Vec<Number>,
    /// By number: the largest number in the subtree.
    last: Vec<Number>,
    postorder: Vec<Node>,
    roots: Vec<Node>,
    /// Number of an open node, and how many of its successors were looked at.
    stack: Vec<(Number, u32)>,
}

impl Dfs {
    pub fn new(view: View<'_>, roots: &[Node]) -> Dfs {
        let mut dfs = Dfs::default();
        dfs.compute(view, roots);
        dfs
    }

    /// Searches from each root in turn, and each node's successors in their order.
    pub fn compute(&mut self, view: View<'_>, roots: &[Node]) {
        reset(&mut self.number, view.nodes(), 0);
        reset(&mut self.node, 1, 0);
        reset(&mut self.parent, 1, 0);
        reset(&mut self.last, 1, 0);
        self.postorder.clear();
        self.roots.clear();
        for &root in roots {
            self.grow(view, root);
        }
    }

    /// Adds one more root to a finished search.
    pub(super) fn grow(&mut self, view: View<'_>, root: Node) {
        self.roots.push(root);
        if self.reached(root) {
            return;
        }
        self.open(root, 0);
        while let Some((number, looked_at)) = self.stack.last_mut() {
            let node = self.node[*number as usize];
            let next = &view.next(node)[*looked_at as usize..];
            match next.iter().position(|&n| self.number[n as usize] == 0) {
                Some(skipped) => {
                    *looked_at += skipped as u32 + 1;
                    let parent = *number;
                    self.open(next[skipped], parent);
                }
                None => {
                    self.last[*number as usize] = (self.node.len() - 1) as Number;
                    self.postorder.push(node);
                    self.stack.pop();
                }
            }
        }
        self.last[0] = (self.node.len() - 1) as Number;
    }

    fn open(&mut self, node: Node, parent: Number) {
        let number = self.node.len() as Number;
        self.number[node as usize] = number;
        self.node.push(node);
        self.parent.push(parent);
        self.last.push(number);
        self.stack.push((number, 0));
    }

    /// The roots as they were given.
    pub fn roots(&self) -> &[Node] {
        &self.roots
    }

    pub fn reached(&self, node: Node) -> bool {
        self.number[node as usize] != 0
    }

    pub fn postorder(&self) -> &[Node] {
        &self.postorder
    }

    /// Reverse postorder: in a graph without cycles, every node after all its predecessors.
    pub fn reverse_postorder(&self) -> impl DoubleEndedIterator<Item = Node> + ExactSizeIterator + '_ {
        self.postorder.iter().rev().copied()
    }

    /// The nodes in the order of the search.
    pub fn preorder(&self) -> &[Node] {
        self.node.get(1..).unwrap_or_default()
    }

    /// Numbers run from 1 to this.
    pub(super) fn highest(&self) -> Number {
        self.node.len().saturating_sub(1) as Number
    }

    /// 0 if the node was not reached.
    pub(super) fn number(&self, node: Node) -> Number {
        self.number[node as usize]
    }

    pub(super) fn node(&self, number: Number) -> Node {
        self.node[number as usize]
    }

    pub(super) fn parent(&self, number: Number) -> Number {
        self.parent[number as usize]
    }

    /// Is `above` an ancestor of `below` in the search tree, or `below` itself?
    pub(super) fn is_ancestor(&self, above: Number, below: Number) -> bool {
        above <= below && below <= self.last[above as usize]
    }
}

/// The representative of `x`'s set. Links lead to smaller numbers (or stay), and get shorter by being walked.
pub(super) fn find(link: &mut [Number], mut x: Number) -> Number {
    while link[x as usize] != x {
        let above = link[link[x as usize] as usize];
        link[x as usize] = above;
        x = above;
    }
    x
}

#[cfg(test)]
mod tests {
    use super::super::graph::Graph;
    use super::*;

    #[test]
    fn orders_of_a_diamond_with_a_tail() {
        let graph = Graph::new(5, &[(0, 1), (0, 2), (1, 3), (2, 3), (3, 4)]);
        let dfs = Dfs::new(graph.forward(), &[0]);
        assert_eq!(dfs.preorder(), [0, 1, 3, 4, 2]);
        assert_eq!(dfs.reverse_postorder().collect::<Vec<_>>(), [0, 2, 1, 3, 4]);
    }

    #[test]
    fn a_root_inside_an_earlier_tree_is_remembered() {
        let graph = Graph::new(4, &[(0, 1), (2, 1)]);
        let dfs = Dfs::new(graph.forward(), &[0, 1, 2]);
        assert_eq!(dfs.roots(), [0, 1, 2]);
        assert_eq!(dfs.preorder(), [0, 1, 2]);
        assert!(!dfs.reached(3));
        assert!(dfs.is_ancestor(0, dfs.number(2)) && dfs.is_ancestor(dfs.number(0), dfs.number(1)));
        assert!(!dfs.is_ancestor(dfs.number(0), dfs.number(2)));
    }

    #[test]
    fn a_million_nodes_in_a_row_do_not_overflow_the_stack() {
        let edges: Vec<(Node, Node)> = (0..999_999).map(|n| (n, n + 1)).collect();
        let graph = Graph::new(1_000_000, &edges);
        assert_eq!(Dfs::new(graph.forward(), &[0]).postorder().len(), 1_000_000);
    }
}
