//! The estimated weights of small functions whose answer is plain, and of extreme ones.

use lancet_engine::program::{BlockId, Call, ExitKind};
use lancet_isa::Target;

use super::made::{Made, Random};
use crate::tools::count::{Counts, Estimator, Weights};

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-4 * b.abs()
}

#[track_caller]
fn assert_close(found: &[f64], expected: &[f64]) {
    assert_eq!(found.len(), expected.len());
    assert!(found.iter().zip(expected).all(|(a, b)| close(*a, *b)), "{found:?} is not {expected:?}");
}

#[test]
fn branches_split_evenly_and_join() {
    let weights = Made::new(4, &[(0, 1), (0, 2), (1, 3), (2, 3)], &[(3, ExitKind::Return)]).estimate();
    assert_close(&weights.edges, &[0.5, 0.5, 0.5, 0.5]);
    assert_close(&weights.exits, &[1.0]);
}

#[test]
fn a_loop_runs_ten_times() {
    // 1 is the header, 2 may break, 3 is the latch that may leave.
    let edges = [(0, 1), (1, 2), (2, 4), (2, 3), (3, 1), (3, 4)];
    let weights = Made::new(5, &edges, &[(4, ExitKind::Return)]).estimate();
    assert_close(&weights.edges, &[1.0, 10.0, 0.5, 9.5, 9.0, 0.5]);
    assert_close(&weights.exits, &[1.0]);
}

#[test]
fn loops_multiply() {
    // Both bodies are do-while loops: 1 around 2.
    let edges = [(0, 1), (1, 2), (2, 2), (2, 3), (3, 1), (3, 4)];
    let weights = Made::new(5, &edges, &[(4, ExitKind::Return)]).estimate();
    assert_close(&weights.edges, &[1.0, 10.0, 90.0, 10.0, 9.0, 1.0]);
}

#[test]
fn a_way_out_of_two_loops_is_as_rare_as_the_outer_one_is_entered() {
    let edges = [(0, 1), (1, 2), (2, 2), (2, 3), (3, 1)];
    let weights = Made::new(4, &edges, &[(2, ExitKind::Return), (3, ExitKind::Return)]).estimate();
    assert_close(&weights.exits, &[0.5, 0.5]);
}

#[test]
fn what_must_fail_is_cold() {
    // 1 leads only to 2, which calls something that never returns.
    let mut made = Made::new(4, &[(0, 1), (0, 3), (1, 2)], &[(2, ExitKind::NoReturn), (3, ExitKind::Return)]);
    made.calls.push(Call { block: BlockId(2), to: Target::Computed, returns: false });
    let weights = made.estimate();
    assert_close(&weights.edges, &[1.0 / 1024.0, 1023.0 / 1024.0, 1.0 / 1024.0]);
    // In a function that cannot but fail, no way is colder than another.
    let trap = Made::new(3, &[(0, 1), (0, 2)], &[(1, ExitKind::Stop), (2, ExitKind::Stop)]);
    assert_close(&trap.estimate().edges, &[0.5, 0.5]);
}

#[test]
fn landing_pads_are_cold() {
    let mut made = Made::new(2, &[], &[(0, ExitKind::Return), (1, ExitKind::Return)]);
    made.entries.push(BlockId(1));
    let weights = made.estimate();
    assert_close(&weights.entries, &[1.0, 1.0 / 1024.0]);
    assert_close(&weights.exits, &[1.0, 1.0 / 1024.0]);
}

fn all(weights: &Weights) -> impl Iterator<Item = f64> {
    [&weights.edges, &weights.entries, &weights.exits].into_iter().flatten().copied()
}

#[test]
fn extremes_stay_in_range() {
    // A nest of loops: i is the header of the i-th, and the blocks behind go round.
    let depth = 1000u32;
    let mut nest: Vec<(u32, u32)> = (0..2 * depth).map(|i| (i, i + 1)).collect();
    nest.extend((0..depth).map(|i| (depth + i, depth - 1 - i)));
    nest.sort_unstable();
    let nest = Made::new(2 * depth as usize + 1, &nest, &[(2 * depth, ExitKind::Return)]);
    assert_eq!(nest.loops().iter().map(|(_, l)| l.depth).max(), Some(depth));
    // A chain of branches that each leave half.
    let chain: Vec<(u32, u32)> = (0..4000).flat_map(|i| [(i, i + 1), (i, 4001)]).collect();
    let chain = Made::new(4002, &chain, &[(4000, ExitKind::Return), (4001, ExitKind::Return)]);
    for made in [nest, chain] {
        assert!(all(&made.estimate()).all(|weight| weight.is_finite() && weight > 0.0));
    }
}

#[test]
fn every_reached_way_has_a_weight_and_old_scratch_changes_nothing() {
    let mut used = Estimator::default();
    for seed in 0..2000 {
        let made = Made::random(&mut Random(seed), 30);
        let weights = made.estimate();
        assert!(all(&weights).all(|weight| weight.is_finite() && weight >= 0.0), "seed {seed}");
        assert_eq!(used.estimate_shape(&made.shape(), &made.loops()), &weights, "seed {seed}");
    }
}

#[test]
fn a_profile_comes_before_the_estimate() {
    let made = Made::new(4, &[(0, 1), (0, 2), (1, 3), (2, 3)], &[(3, ExitKind::Return)]);
    let mut estimate = made.estimate();
    estimate.edges = vec![1e100, 0.0, 0.5, 0.25];
    let profile = Counts { edges: vec![6, 7, 0, 0], entries: vec![13], exits: vec![13], ..Counts::default() };
    let weights = Weights::from_profile(&profile, &estimate);
    assert!(weights.edges[1] > weights.edges[0], "one run more outweighs any estimate");
    assert!(weights.edges[2] > weights.edges[3], "the estimate decides where nothing ran");
}
