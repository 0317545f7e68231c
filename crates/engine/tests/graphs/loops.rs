//! The loop forest against its recursive definition.

use std::collections::BTreeSet;

use lancet_engine::program::dfs::Dfs;
use lancet_engine::program::dom::Dominators;
use lancet_engine::program::graph::{Edge, Graph, Node};
use lancet_engine::program::loops::{LoopForest, LoopId};

use super::random::{Case, case};

struct NaiveLoop {
    header: Node,
    blocks: BTreeSet<Node>,
    parent: Option<Node>,
    depth: u32,
}

/// The definition: each strongly connected part with a cycle is a loop; take its header away and look again.
fn nest(case: &Case, part: &BTreeSet<Node>, order: &[Node], parent: Option<(Node, u32)>, found: &mut Vec<NaiveLoop>) {
    let inside: Vec<(Node, Node)> =
        case.edges.iter().copied().filter(|(a, b)| part.contains(a) && part.contains(b)).collect();
    let sub = Case::new(case.nodes, &inside, &[]);
    let reach: Vec<Vec<bool>> = (0..case.nodes as Node).map(|n| sub.reach(&[n], None)).collect();
    let mut seen = BTreeSet::new();
    for &header in order.iter().filter(|n| part.contains(n)) {
        if !seen.insert(header) {
            continue;
        }
        let mutual = |&n: &Node| reach[header as usize][n as usize] && reach[n as usize][header as usize];
        let mut blocks: BTreeSet<Node> = part.iter().copied().filter(mutual).collect();
        seen.extend(&blocks);
        if blocks.len() == 1 && !inside.contains(&(header, header)) {
            continue;
        }
        let depth = 1 + parent.map_or(0, |p| p.1);
        found.push(NaiveLoop { header, blocks: blocks.clone(), parent: parent.map(|p| p.0), depth });
        blocks.remove(&header);
        nest(case, &blocks, order, Some((header, depth)), found);
    }
}

fn pairs(edges: impl Iterator<Item = Edge>) -> Vec<u32> {
    let mut indices: Vec<u32> = edges.map(|e| e.index).collect();
    indices.sort_unstable();
    indices
}

fn edges_where(case: &Case, wanted: impl Fn(Node, Node) -> bool) -> Vec<u32> {
    (0..case.edges.len() as u32).filter(|&i| wanted(case.edges[i as usize].0, case.edges[i as usize].1)).collect()
}

#[test]
fn agree_with_the_definition_on_random_graphs() {
    let (mut dfs, mut forest, mut dominators) = (Dfs::default(), LoopForest::default(), Dominators::default());
    let (mut loops, mut irreducible, mut deep) = (0, 0, 0);
    for seed in 0..8_000 {
        let case = case(seed);
        dfs.compute(case.graph.forward(), &case.entries);
        forest.compute(&case.graph, &dfs);
        dominators.compute(case.graph.forward(), &dfs);
        let reached: BTreeSet<Node> = dfs.preorder().iter().copied().collect();
        let mut expected = Vec::new();
        nest(&case, &reached, dfs.preorder(), None, &mut expected);
        expected.sort_by_key(|l| dfs.preorder().iter().position(|&n| n == l.header));

        let context = format!("seed {seed}: {:?} from {:?}", case.edges, case.entries);
        assert_eq!(forest.len(), expected.len(), "{context}");
        for ((id, l), naive) in forest.iter().zip(&expected) {
            assert_eq!(l.header, naive.header, "{context}");
            assert_eq!(l.parent.map(|p| forest.get(p).header), naive.parent, "{context}");
            assert!(l.parent < Some(id), "{context}");
            assert_eq!(l.depth, naive.depth, "{context}");
            check_queries(&case, &forest, id, naive, &reached, &context);
            let dominated = naive.blocks.iter().all(|&n| dominators.dominates(l.header, n));
            assert_eq!(l.irreducible, !dominated, "{context}: header {}", l.header);
            irreducible += usize::from(l.irreducible);
            deep += usize::from(l.depth > 2);
        }
        for node in 0..case.nodes as Node {
            let around = expected.iter().filter(|l| l.blocks.contains(&node));
            let innermost = around.max_by_key(|l| l.depth);
            assert_eq!(
                forest.innermost(node).map(|id| forest.get(id).header),
                innermost.map(|l| l.header),
                "{context}"
            );
            assert_eq!(forest.depth(node), innermost.map_or(0, |l| l.depth), "{context}");
        }
        loops += forest.len();
    }
    assert!(loops > 5_000 && irreducible > 1_000 && deep > 500, "too poor: {loops} {irreducible} {deep}");
}

fn check_queries(
    case: &Case,
    forest: &LoopForest,
    id: LoopId,
    naive: &NaiveLoop,
    reached: &BTreeSet<Node>,
    context: &str,
) {
    let (inside, header) = (|n: Node| naive.blocks.contains(&n), naive.header);
    assert_eq!(forest.blocks(id).iter().copied().collect::<BTreeSet<_>>(), naive.blocks, "{context}");
    assert_eq!(forest.blocks(id).len(), naive.blocks.len(), "{context}: a block twice");
    assert_eq!(forest.blocks(id)[0], header, "{context}");
    let own: Vec<Node> = forest.blocks(id).iter().copied().filter(|&n| forest.innermost(n) == Some(id)).collect();
    assert_eq!(forest.own_blocks(id), own, "{context}");
    for node in 0..case.nodes as Node {
        assert_eq!(forest.contains(id, node), inside(node), "{context}");
    }
    for (other, l) in forest.iter() {
        assert_eq!(forest.encloses(id, other), inside(l.header), "{context}");
    }
    let back = edges_where(case, |a, b| inside(a) && b == header);
    let entry = edges_where(case, |a, b| reached.contains(&a) && !inside(a) && inside(b));
    let exit = edges_where(case, |a, b| inside(a) && !inside(b));
    assert_eq!(pairs(forest.back_edges(&case.graph, id)), back, "{context}");
    assert_eq!(pairs(forest.entry_edges(&case.graph, id)), entry, "{context}");
    assert_eq!(pairs(forest.exit_edges(&case.graph, id)), exit, "{context}");
    let mut others: BTreeSet<Node> = entry.iter().map(|&e| case.edges[e as usize].1).collect();
    others.extend(case.entries.iter().filter(|&&n| inside(n)));
    others.remove(&header);
    assert_eq!(forest.other_entries(&case.graph, id).collect::<BTreeSet<_>>(), others, "{context}");
}

fn forest_of(nodes: usize, edges: &[(Node, Node)]) -> (Graph, LoopForest) {
    let graph = Graph::new(nodes, edges);
    let forest = LoopForest::new(&graph, &Dfs::new(graph.forward(), &[0]));
    (graph, forest)
}

#[test]
fn a_nest_of_two_with_a_break_out_of_both() {
    // 0 -> 1 [ 2 [ 3 ] 4 ] 5, and 3 breaks out to 5.
    let (graph, forest) = forest_of(6, &[(0, 1), (1, 2), (2, 3), (3, 2), (3, 5), (2, 4), (4, 1), (4, 5)]);
    let (outer, inner) = (LoopId(0), LoopId(1));
    assert_eq!(forest.len(), 2);
    assert_eq!(forest.blocks(outer), [1, 4, 2, 3]);
    assert_eq!(forest.own_blocks(outer), [1, 4]);
    assert_eq!(forest.blocks(inner), [2, 3]);
    assert_eq!((forest.get(inner).parent, forest.depth(3), forest.depth(5)), (Some(outer), 2, 0));
    let exits: Vec<(Node, Node)> = forest.exit_edges(&graph, inner).map(|e| (e.from, e.to)).collect();
    assert_eq!(exits, [(2, 4), (3, 5)]);
    assert!(forest.iter().all(|(_, l)| !l.irreducible));
}

#[test]
fn a_loop_with_two_entries() {
    let (graph, forest) = forest_of(4, &[(0, 1), (0, 2), (1, 2), (2, 1), (2, 3)]);
    assert_eq!(forest.len(), 1);
    assert!(forest.get(LoopId(0)).irreducible);
    assert_eq!(forest.get(LoopId(0)).header, 1);
    assert_eq!(forest.other_entries(&graph, LoopId(0)).collect::<Vec<_>>(), [2]);
    assert_eq!(forest.entry_edges(&graph, LoopId(0)).count(), 2);
}

#[test]
fn deep_irreducible_nests_are_not_quadratic() {
    // The last node of a chain jumps back to every other, so each of them heads a loop inside the one before. A
    // jump from outside to the last node enters them all.
    let n = 50_000;
    let mut edges: Vec<(Node, Node)> = (0..n).map(|i| (i, i + 1)).collect();
    edges.extend((1..n).map(|i| (n, i)));
    edges.push((0, n));
    let (graph, forest) = forest_of(n as usize + 1, &edges);
    assert_eq!(forest.len(), n as usize - 1);
    assert_eq!(forest.depth(n), n - 1);
    assert!(forest.iter().all(|(_, l)| l.irreducible));
    assert_eq!(forest.other_entries(&graph, LoopId(7)).collect::<Vec<_>>(), [n]);
}
