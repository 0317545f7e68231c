//! A directed graph in the form that analyses walk fastest.
//!
//! A program has a hundred thousand control-flow graphs of a dozen blocks each. Building a vector per block would
//! cost more than analysing it, so a [`Graph`] is a handful of flat arrays (compressed sparse rows) that
//! [`Graph::rebuild`] fills again for the next function without giving memory back. The other modules follow the
//! same pattern: [`Dfs`](super::dfs::Dfs), [`Dominators`](super::dom::Dominators),
//! [`LoopForest`](super::loops::LoopForest) and [`Liveness`](super::liveness::Liveness) each own their results and
//! their scratch space, and a `compute` that overwrites both.
//!
//! Invariants: successors and predecessors of a node keep the order of the edge list, so everything computed from
//! them is deterministic. Parallel edges and self loops are kept. An edge keeps its index in that list.

/// A node: a number below [`Graph::nodes`].
pub type Node = u32;

/// An index into the edge list that the graph was built from.
pub type EdgeIndex = u32;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Edge {
    pub from: Node,
    pub to: Node,
    pub index: EdgeIndex,
}

#[derive(Clone, Default, Debug)]
pub struct Graph {
    out: Rows,
    into: Rows,
}

/// One direction of the adjacency: row `n` is `node[start[n]..start[n + 1]]`.
#[derive(Clone, Default, Debug)]
struct Rows {
    start: Vec<u32>,
    node: Vec<Node>,
    edge: Vec<EdgeIndex>,
}

impl Rows {
    /// A counting sort by `key`, stable.
    fn fill(&mut self, nodes: usize, edges: &[(Node, Node)], key: impl Fn((Node, Node)) -> (Node, Node)) {
        self.start.clear();
        self.start.resize(nodes + 1, 0);
        self.node.clear();
        self.node.resize(edges.len(), 0);
        self.edge.clear();
        self.edge.resize(edges.len(), 0);
        for &edge in edges {
            self.start[key(edge).0 as usize] += 1;
        }
        // `start[n]` becomes the end of row n, and placing the edges backwards moves it to the row's beginning.
        let mut end = 0;
        for slot in &mut self.start {
            end += *slot;
            *slot = end;
        }
        for (index, &edge) in edges.iter().enumerate().rev() {
            let (row, other) = key(edge);
            let slot = &mut self.start[row as usize];
            *slot -= 1;
            self.node[*slot as usize] = other;
            self.edge[*slot as usize] = index as EdgeIndex;
        }
    }

    fn range(&self, row: Node) -> std::ops::Range<usize> {
        self.start[row as usize] as usize..self.start[row as usize + 1] as usize
    }

    fn row(&self, row: Node) -> &[Node] {
        &self.node[self.range(row)]
    }

    fn row_edges(&self, row: Node) -> impl DoubleEndedIterator<Item = (Node, EdgeIndex)> + '_ {
        self.range(row).map(|i| (self.node[i], self.edge[i]))
    }
}

impl Graph {
    /// # Panics
    /// If an edge names a node that is not below `nodes`.
    pub fn new(nodes: usize, edges: &[(Node, Node)]) -> Graph {
        let mut graph = Graph::default();
        graph.rebuild(nodes, edges);
        graph
    }

    /// As [`Graph::new`], in the memory of the old graph.
    pub fn rebuild(&mut self, nodes: usize, edges: &[(Node, Node)]) {
        assert!(
            edges.iter().all(|&(from, to)| (from as usize) < nodes && (to as usize) < nodes),
            "an edge leaves the graph of {nodes} nodes"
        );
        self.out.fill(nodes, edges, |(from, to)| (from, to));
        self.into.fill(nodes, edges, |(from, to)| (to, from));
    }

    pub fn nodes(&self) -> usize {
        self.out.start.len().saturating_sub(1)
    }

    pub fn edges(&self) -> usize {
        self.out.node.len()
    }

    pub fn successors(&self, node: Node) -> &[Node] {
        self.out.row(node)
    }

    pub fn predecessors(&self, node: Node) -> &[Node] {
        self.into.row(node)
    }

    pub fn out_edges(&self, node: Node) -> impl DoubleEndedIterator<Item = Edge> + '_ {
        self.out.row_edges(node).map(move |(to, index)| Edge { from: node, to, index })
    }

    pub fn in_edges(&self, node: Node) -> impl DoubleEndedIterator<Item = Edge> + '_ {
        self.into.row_edges(node).map(move |(from, index)| Edge { from, to: node, index })
    }

    pub fn forward(&self) -> View<'_> {
        View { next: &self.out, previous: &self.into }
    }

    /// The graph with every edge turned around.
    pub fn backward(&self) -> View<'_> {
        View { next: &self.into, previous: &self.out }
    }
}

/// A graph seen in one direction.
#[derive(Clone, Copy, Debug)]
pub struct View<'g> {
    next: &'g Rows,
    previous: &'g Rows,
}

impl<'g> View<'g> {
    pub fn nodes(self) -> usize {
        self.next.start.len().saturating_sub(1)
    }

    pub fn next(self, node: Node) -> &'g [Node] {
        self.next.row(node)
    }

    pub fn previous(self, node: Node) -> &'g [Node] {
        self.previous.row(node)
    }
}

/// Makes `vec` hold exactly `len` times `value`, in the memory it has.
pub(super) fn reset<T: Clone>(vec: &mut Vec<T>, len: usize, value: T) {
    vec.clear();
    vec.resize(len, value);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_keep_the_order_of_the_edge_list() {
        let graph = Graph::new(4, &[(2, 1), (0, 3), (0, 1), (2, 1), (3, 3), (0, 2)]);
        assert_eq!(graph.successors(0), [3, 1, 2]);
        assert!(graph.successors(1).is_empty());
        assert_eq!(graph.predecessors(1), [2, 0, 2]);
        assert_eq!(graph.predecessors(3), [0, 3]);
        let parallel: Vec<EdgeIndex> = graph.out_edges(2).map(|e| e.index).collect();
        assert_eq!(parallel, [0, 3]);
    }

    #[test]
    fn rebuilding_forgets_the_old_graph() {
        let mut graph = Graph::new(9, &[(0, 8), (8, 0)]);
        graph.rebuild(2, &[(0, 1)]);
        assert_eq!((graph.nodes(), graph.edges()), (2, 1));
        assert!(graph.predecessors(0).is_empty());
        graph.rebuild(0, &[]);
        assert_eq!((graph.nodes(), graph.edges()), (0, 0));
    }
}
