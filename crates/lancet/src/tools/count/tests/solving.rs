//! Everything that a walk did must follow from the counters alone.

use lancet_engine::program::{BlockId, EdgeId, ExitKind};

use super::made::{Made, Random};
use super::walk::{Habits, Truth, walk};
use crate::tools::count::flow::Shape;
use crate::tools::count::place::{Placer, every_edge};
use crate::tools::count::solve::{Fault, Solver};
use crate::tools::count::{Counts, Derived, Placement, Slot, Weights};

const CALM: Habits = Habits { vanishes: 0, throws: 0, returns_twice: 0, is_stopped: 0 };
const WILD: Habits = Habits { vanishes: 25, throws: 50, returns_twice: 10, is_stopped: 2 };

#[test]
fn walks_are_reconstructed() {
    let (mut placer, mut solver) = (Placer::default(), Solver::default());
    let mut seen = Seen::default();
    for seed in 0..6000 {
        let mut r = Random(seed);
        let mut made = Made::random(&mut r, 24);
        made.open = made.shape().tidy_open();
        let weights = if r.chance(80) { made.estimate() } else { Weights::default() };
        let habits = if r.chance(70) { WILD } else { CALM };
        let truth = walk(made.shape(), &mut r, habits, 6, 40);
        let placed = placer.place_shape(&made.shape(), &weights);
        for placement in [placed, every_edge(&made.shape())] {
            let solved = solver.solve_shape(&made.shape(), &placement, &truth.counters(&placement), &[]);
            let is_right = solved.as_ref().is_ok_and(|counts| truth.is_told_by(counts));
            assert!(is_right, "seed {seed}: {solved:?}, not {:?}: {made:?} {placement:?}", truth.counts);
        }
        seen.note(&truth);
    }
    assert!(seen.all(), "the walks were too tame: {seen:?}");
}

/// Some blocks count how much a register has grown, and the rest follows.
#[test]
fn walks_are_reconstructed_from_registers() {
    let (mut placer, mut solver) = (Placer::default(), Solver::default());
    for seed in 0..6000 {
        let mut r = Random(seed);
        let mut made = Made::random(&mut r, 24);
        made.open = made.shape().tidy_open();
        let blocks: Vec<u32> = (0..made.blocks as u32).filter(|_| r.chance(20)).collect();
        let by = |r: &mut Random| [1, -1, 8, -3, 256][r.below(5)];
        let derived: Vec<Derived> =
            blocks.into_iter().map(|block| Derived { block: BlockId(block), by: by(&mut r) }).collect();
        let shape = Shape { derived: &derived, ..made.shape() };
        let truth = walk(shape, &mut r, WILD, 6, 40);
        let placement = placer.place_shape(&shape, &made.estimate());
        let mut counters = truth.counters(&placement);
        for (slot, counter) in placement.counters.iter().zip(&mut counters) {
            if let Slot::Block(block) = slot {
                let by = derived.iter().find(|derived| derived.block == *block).unwrap().by;
                *counter = counter.wrapping_mul(by as u64);
            }
        }
        let solved = solver.solve_shape(&shape, &placement, &counters, &[]);
        let is_right = solved.as_ref().is_ok_and(|counts| truth.is_told_by(counts));
        assert!(is_right, "seed {seed}: {solved:?}, not {:?}: {made:?} {placement:?}", truth.counts);
    }
}

/// That the walks did what they are there for.
#[derive(Default, Debug)]
struct Seen {
    lost_calls: bool,
    double_returns: bool,
    ended_inside: bool,
    began_inside: bool,
    later_entries: bool,
    stopped: usize,
    exact: usize,
}

impl Seen {
    fn note(&mut self, truth: &Truth) {
        let Counts { calls_not_returned: calls, ended_inside: inside, entries, .. } = &truth.counts;
        self.lost_calls |= calls.iter().any(|n| *n > 0);
        self.double_returns |= calls.iter().any(|n| *n < 0);
        self.ended_inside |= inside.iter().any(|n| *n > 0);
        self.began_inside |= inside.iter().any(|n| *n < 0);
        self.later_entries |= entries.iter().skip(1).any(|n| *n > 0);
        match truth.stopped.is_empty() {
            true => self.exact += 1,
            false => self.stopped += 1,
        }
    }

    fn all(&self) -> bool {
        let kinds = self.lost_calls && self.double_returns && self.ended_inside && self.began_inside;
        kinds && self.later_entries && self.stopped > 500 && self.exact > 500
    }
}

/// 0 -> 1 -> 3, 0 -> 2 -> 3, returns.
fn diamond() -> Made {
    Made::new(4, &[(0, 1), (0, 2), (1, 3), (2, 3)], &[(3, ExitKind::Return)])
}

fn counted(slots: &[Slot]) -> Placement {
    Placement { counters: slots.to_vec(), ..Placement::default() }
}

fn fault(made: &Made, slots: &[Slot], counters: &[u64]) -> Option<Fault> {
    Solver::default().solve_shape(&made.shape(), &counted(slots), counters, &[]).err()
}

#[test]
fn a_diamond_needs_two_counters() {
    let made = diamond();
    let placement = Placer::default().place_shape(&made.shape(), &made.estimate());
    assert_eq!(placement.counters.len(), 2);
    let slots = counted(&[Slot::Edge(EdgeId(0)), Slot::Exit(0)]);
    let counts = Solver::default().solve_shape(&made.shape(), &slots, &[3, 10], &[]).unwrap();
    assert_eq!(counts.edges, [3, 7, 3, 7]);
    assert_eq!(counts.blocks, [10, 3, 7, 10]);
    assert_eq!((counts.entries, counts.exits), (vec![10], vec![10]));
}

#[test]
fn a_thread_that_was_stopped_is_found_where_more_comes_in_than_goes_out() {
    let made = diamond();
    // Three took the one side and two the way on from it: one is still there.
    let slots = counted(&[Slot::Entry(0), Slot::Edge(EdgeId(0)), Slot::Edge(EdgeId(2))]);
    let counts = Solver::default().solve_shape(&made.shape(), &slots, &[10, 3, 2], &[]).unwrap();
    assert_eq!((counts.edges, counts.exits), (vec![3, 7, 2, 7], vec![9]));
    assert_eq!((counts.blocks, counts.stopped), (vec![10, 3, 7, 9], vec![(BlockId(1), 1)]));
    // One more took the one side than left.
    let slots = counted(&[Slot::Edge(EdgeId(0)), Slot::Exit(0)]);
    let counts = Solver::default().solve_shape(&made.shape(), &slots, &[11, 10], &[]).unwrap();
    assert_eq!((counts.edges, counts.stopped), (vec![11, 0, 11, 0], vec![(BlockId(3), 1)]));
}

#[test]
fn counters_that_contradict_the_flow_are_refused() {
    let made = diamond();
    // More runs of one side than of the whole.
    let slots = [Slot::Entry(0), Slot::Edge(EdgeId(0))];
    assert_eq!(fault(&made, &slots, &[10, 11]), Some(Fault::Impossible { link: 1, count: -1 }));
    // A cut of the graph whose two directions differ.
    let all: Vec<Slot> = every_edge(&made.shape()).counters;
    let fault_of = |counters: &[u64]| fault(&made, &all, counters);
    assert_eq!(fault_of(&[3, 7, 3, 7, 10, 10]), None);
    assert_eq!(fault_of(&[3, 7, 3, 6, 10, 10]), Some(Fault::Unbalanced { node: 3, surplus: -1 }));
    let u = u64::MAX;
    assert_eq!(fault_of(&[u, u, u, u, u, u]), Some(Fault::Unbalanced { node: 0, surplus: -i128::from(u) }));
    let too_many = Fault::Impossible { link: 4, count: 2 * i128::from(u) };
    assert_eq!(fault(&made, &[Slot::Edge(EdgeId(0)), Slot::Edge(EdgeId(1))], &[u, u]), Some(too_many));
}

#[test]
fn placements_of_another_function_are_refused() {
    let made = diamond();
    let edge = |i| Slot::Edge(EdgeId(i));
    assert_eq!(fault(&made, &[edge(0)], &[]), Some(Fault::WrongNumber));
    for foreign in [edge(4), Slot::Entry(1), Slot::Exit(u32::MAX), Slot::Block(BlockId(0)), edge(0)] {
        assert_eq!(fault(&made, &[edge(0), foreign], &[1, 1]), Some(Fault::Foreign { counter: 1 }), "{foreign:?}");
    }
    assert!(matches!(fault(&made, &[edge(0)], &[1]), Some(Fault::Undetermined { .. })));
    let spin = Made::new(1, &[(0, 0)], &[(0, ExitKind::Return)]);
    assert_eq!(fault(&spin, &[Slot::Entry(0)], &[1]), Some(Fault::Undetermined { node: 0 }));
}
