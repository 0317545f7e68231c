//! Dominators against reachability without a node.

use lancet_engine::program::dfs::Dfs;
use lancet_engine::program::dom::{Dominators, PostDominators};
use lancet_engine::program::graph::{Graph, Node};

use super::random::{Case, case};

/// `a` dominates `b` if `b` can be reached, but not without `a`.
fn dominates_by_removal(case: &Case, starts: &[Node]) -> Vec<Vec<bool>> {
    let reached = case.reach(starts, None);
    let without = |a: Node| {
        let still = case.reach(starts, Some(a));
        (0..case.nodes).map(|b| reached[b] && !still[b]).collect()
    };
    (0..case.nodes as Node).map(without).collect()
}

/// The strict dominator that all other strict dominators dominate.
fn idom_by_definition(dominates: &[Vec<bool>], b: usize) -> Option<Node> {
    let strict = |a: usize| a != b && dominates[a][b];
    let nearest = |&a: &usize| strict(a) && (0..dominates.len()).all(|c| !strict(c) || dominates[c][a]);
    (0..dominates.len()).find(nearest).map(|a| a as Node)
}

#[test]
fn agree_with_the_definition_on_random_graphs() {
    let (mut dfs, mut dominators, mut with_idom) = (Dfs::default(), Dominators::default(), 0);
    for seed in 0..6_000 {
        let case = case(seed);
        dfs.compute(case.graph.forward(), &case.entries);
        dominators.compute(case.graph.forward(), &dfs);
        let expected = dominates_by_removal(&case, &case.entries);
        for b in 0..case.nodes {
            let idom = dominators.idom(b as Node);
            assert_eq!(idom, idom_by_definition(&expected, b), "seed {seed}: idom({b}), {:?}", case.edges);
            with_idom += usize::from(idom.is_some());
            let chain: Vec<Node> = dominators.strict_dominators(b as Node).collect();
            for (a, row) in expected.iter().enumerate() {
                let got = dominators.dominates(a as Node, b as Node);
                assert_eq!(got, row[b], "seed {seed}: {a} dom {b}, {:?}", case.edges);
                assert_eq!(chain.contains(&(a as Node)), a != b && got, "seed {seed}: chain of {b}");
            }
        }
    }
    assert!(with_idom > 10_000, "the random graphs are too poor: {with_idom}");
}

#[test]
fn post_dominators_are_dominators_of_the_reversed_graph() {
    let mut post = PostDominators::default();
    for seed in 0..6_000 {
        let case = case(seed);
        let dfs = Dfs::new(case.graph.forward(), &case.entries);
        let given: Vec<Node> = (0..case.nodes as Node).filter(|n| (n + seed as Node).is_multiple_of(5)).collect();
        post.compute(&case.graph, &dfs, &given);
        let turned: Vec<(Node, Node)> = case.edges.iter().map(|&(a, b)| (b, a)).collect();
        let reversed = Case::new(case.nodes, &turned, &[]);
        let expected = dominates_by_removal(&reversed, post.exits());
        for (later, row) in expected.iter().enumerate() {
            for (earlier, &expected) in row.iter().enumerate() {
                let got = post.dominates(later as Node, earlier as Node);
                assert_eq!(got, expected, "seed {seed}: {later} pdom {earlier}, {:?}", case.edges);
            }
        }
        for &exit in post.exits() {
            let real = given.contains(&exit) || case.graph.successors(exit).is_empty();
            let left = case.reach(&[exit], None);
            let leaves =
                |n: usize| left[n] && (given.contains(&(n as Node)) || case.graph.successors(n as Node).is_empty());
            assert!(real || !(0..case.nodes).any(leaves), "seed {seed}: {exit} was made an exit but reaches one");
        }
        for node in (0..case.nodes as Node).filter(|&n| dfs.reached(n)) {
            assert!(post.dominates(node, node), "seed {seed}: {node} reaches no exit");
        }
    }
}

/// The example of Lengauer and Tarjan's paper; nodes R A B C D E F G H I J K L are 0 to 12.
#[test]
fn the_example_of_the_paper() {
    let edges = [
        (0, 1),
        (0, 2),
        (0, 3),
        (1, 4),
        (2, 1),
        (2, 4),
        (2, 5),
        (3, 6),
        (3, 7),
        (4, 12),
        (5, 8),
        (6, 9),
        (7, 9),
        (7, 10),
        (8, 5),
        (8, 11),
        (9, 11),
        (10, 9),
        (11, 9),
        (11, 0),
        (12, 8),
    ];
    let graph = Graph::new(13, &edges);
    let dominators = Dominators::new(graph.forward(), &Dfs::new(graph.forward(), &[0]));
    let idoms: Vec<Option<Node>> = (0..13).map(|n| dominators.idom(n)).collect();
    let expected = [0, 0, 0, 0, 0, 3, 3, 0, 0, 7, 0, 4];
    assert_eq!(idoms[0], None);
    assert_eq!(idoms[1..], expected.map(Some));
}

/// One error exit for a hundred thousand tests in a row: quadratic for algorithms that walk the tree.
#[test]
fn a_long_chain_with_a_common_exit_is_not_quadratic() {
    let n = 100_000;
    let edges: Vec<(Node, Node)> = (0..n).flat_map(|i| [(i, n + 1), (i, i + 1)]).collect();
    let graph = Graph::new(n as usize + 2, &edges);
    let dominators = Dominators::new(graph.forward(), &Dfs::new(graph.forward(), &[0]));
    assert_eq!(dominators.idom(n + 1), Some(0));
    assert_eq!(dominators.strict_dominators(n).count(), n as usize);
}
