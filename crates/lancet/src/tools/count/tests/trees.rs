//! The tree against its definition.

use lancet_engine::program::{BlockId, Call, EdgeId, EdgeKind, Exit, ExitKind};
use lancet_isa::Target;

use super::made::{Made, Random};
use crate::tools::count::flow::{Degrees, FlowGraph, Role};
use crate::tools::count::place::Placer;
use crate::tools::count::{Placement, Slot, Weights};

/// How many parts the graph falls into, by flooding. Only the links that `keep` picks count.
fn parts(flow: &FlowGraph, keep: impl Fn(usize) -> bool) -> usize {
    let mut part: Vec<usize> = (0..flow.nodes()).collect();
    loop {
        let mut changed = false;
        for (_, link) in flow.links().iter().enumerate().filter(|(i, _)| keep(*i)) {
            let (a, b) = (link.from as usize, link.to as usize);
            changed |= part[a] != part[b];
            (part[a], part[b]) = (part[a].min(part[b]), part[a].min(part[b]));
        }
        if !changed {
            break;
        }
    }
    (0..flow.nodes()).filter(|node| part[*node] == *node).count()
}

fn on_tree(flow: &FlowGraph, placement: &Placement) -> Vec<bool> {
    let mut tree: Vec<bool> = flow.links().iter().map(|link| link.role != Role::Absent).collect();
    for slot in &placement.counters {
        tree[flow.link_of(*slot).unwrap()] = false;
    }
    tree
}

fn random_weights(made: &Made, r: &mut Random) -> Weights {
    let mut some = |n: usize| (0..n).map(|_| r.below(6) as f64).collect();
    Weights { edges: some(made.edges.len()), entries: some(made.entries.len()), exits: some(made.exits.len()) }
}

#[test]
fn counters_are_what_a_spanning_forest_leaves_over() {
    for seed in 0..3000 {
        let mut r = Random(seed);
        let mut made = Made::random(&mut r, 16);
        made.open = made.shape().tidy_open();
        let placement = Placer::default().place_shape(&made.shape(), &made.estimate());
        let flow = FlowGraph::of(&made.shape());
        let tree = on_tree(&flow, &placement);
        let role = |i: usize| flow.links()[i].role;
        assert!((0..tree.len()).all(|i| role(i) != Role::Leak || tree[i]), "seed {seed}: a leak is counted");
        assert!((0..tree.len()).all(|i| role(i) != Role::Counted || !tree[i]), "seed {seed}: an entry is not counted");
        let there = (0..tree.len()).filter(|i| role(*i) != Role::Absent).count();
        let most = parts(&flow, |i| matches!(role(i), Role::Free | Role::Leak));
        assert_eq!(placement.counters.len(), there + most - flow.nodes(), "seed {seed}: links - nodes + parts");
        assert_eq!(parts(&flow, |i| tree[i]), most, "seed {seed}: the tree does not span");
    }
}

#[test]
fn no_other_tree_is_dearer() {
    let mut tried = 0;
    for seed in 0..4000 {
        let mut r = Random(seed);
        let mut made = Made::random(&mut r, 6);
        made.open = made.shape().tidy_open();
        let flow = FlowGraph::of(&made.shape());
        let free: Vec<usize> = (0..flow.links().len()).filter(|i| flow.links()[*i].role == Role::Free).collect();
        if free.len() > 11 {
            continue;
        }
        tried += 1;
        let weights = random_weights(&made, &mut r);
        let jump_price = r.below(3) as u64;
        let mut degrees = Degrees::default();
        degrees.count(&flow);
        // At equal price, trouble decides.
        let value = |i: usize| {
            let trouble = match flow.slot(i) {
                _ if !degrees.is_critical(&flow.links()[i]) => 0,
                Some(Slot::Edge(id)) if made.edges[id.0 as usize].kind == EdgeKind::Fall => 1,
                _ => 2,
            };
            let price = if trouble == 2 { 1 + jump_price } else { 1 };
            1000 * price * weights.of(flow.slot(i).unwrap()) as u64 + trouble
        };
        let leak = |i: usize| flow.links()[i].role == Role::Leak;
        let most = parts(&flow, |i| leak(i) || free.contains(&i));
        let size = flow.nodes() - most - (0..flow.links().len()).filter(|i| leak(*i)).count();
        let best = (0..1u32 << free.len())
            .filter(|set| set.count_ones() as usize == size)
            .map(|set| free.iter().enumerate().filter(|(bit, _)| set >> bit & 1 == 1).map(|(_, i)| *i).collect())
            .filter(|tree: &Vec<usize>| parts(&flow, |i| leak(i) || tree.contains(&i)) == most)
            .map(|tree| tree.into_iter().map(value).sum::<u64>())
            .max();
        let placement = Placer::with_jump_price(jump_price as f64).place_shape(&made.shape(), &weights);
        let tree = on_tree(&flow, &placement);
        let ours: u64 = free.iter().filter(|i| tree[**i]).map(|i| value(*i)).sum();
        assert_eq!(Some(ours), best, "seed {seed}: {made:?} {weights:?}");
    }
    assert!(tried > 1000);
}

#[test]
fn a_call_costs_a_counter() {
    let mut made = Made::new(2, &[(0, 1), (1, 0)], &[(1, ExitKind::Return)]);
    let counters = |made: &Made| Placer::default().place_shape(&made.shape(), &made.estimate()).counters;
    // The edge that goes on round is on the tree, and so is the way in or the way out.
    assert_eq!(counters(&made), [Slot::Edge(EdgeId(1)), Slot::Exit(0)]);
    // The leak takes the place of the latter.
    made.calls.push(Call { block: BlockId(0), to: Target::Computed, returns: true });
    assert_eq!(counters(&made), [Slot::Edge(EdgeId(1)), Slot::Entry(0), Slot::Exit(0)]);
}

#[test]
fn a_call_that_never_returns_is_no_second_way_out() {
    let mut made = Made::new(1, &[], &[(0, ExitKind::NoReturn)]);
    made.calls.push(Call { block: BlockId(0), to: Target::Computed, returns: false });
    let flow = FlowGraph::of(&made.shape());
    assert_eq!(flow.links().len(), 2);
    let placement = Placer::default().place_shape(&made.shape(), &made.estimate());
    assert_eq!(placement.counters, [Slot::Entry(0)]);
}

#[test]
fn what_leaks_anyway_is_not_open_too() {
    let mut made = Made::new(2, &[(0, 1)], &[(1, ExitKind::Return)]);
    made.calls.push(Call { block: BlockId(0), to: Target::Computed, returns: true });
    made.open = [1, 0, 7, 1].map(BlockId).to_vec();
    assert_eq!(Placer::default().place_shape(&made.shape(), &made.estimate()).open, [BlockId(1)]);
}

#[test]
fn unresolved_jumps_and_later_entries_are_counted() {
    let mut made = Made::new(3, &[(0, 1), (2, 1)], &[(1, ExitKind::Unresolved)]);
    made.exits.push(Exit { from: BlockId(2), kind: ExitKind::Return });
    made.entries = [0, 2, 2].map(BlockId).to_vec();
    let mut heavy = made.estimate();
    heavy.entries[1] = 1e9;
    heavy.exits[0] = 1e9;
    let counters = Placer::default().place_shape(&made.shape(), &heavy).counters;
    assert!(counters.contains(&Slot::Exit(0)) && counters.contains(&Slot::Entry(1)), "{counters:?}");
    assert!(!counters.contains(&Slot::Entry(2)), "the same entry twice: {counters:?}");
}
