//! The functions of real programs: the committed sample, and this test itself.

use std::path::Path;
use std::sync::Arc;

use lancet_engine::image::Image;
use lancet_engine::program::{Func, Program};

use super::made::Random;
use super::walk::{Habits, Truth, walk};
use crate::tools::count::flow::Shape;
use crate::tools::count::{Cost, Estimator, FlowError, Place, Placement, Placer, Solver, Weights};

const SAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/x86_64/sample/sample.elf");

fn program(path: &Path) -> Program {
    Program::analyse(Arc::new(Image::open(path).unwrap()))
}

fn visit(func: &Func, seed: u64) -> Truth {
    let habits = Habits { vanishes: 2, throws: 50, returns_twice: 1, is_stopped: 0 };
    walk(Shape::of(func, &[], &[], &[]), &mut Random(seed), habits, 10, 200)
}

#[test]
fn the_sample_is_counted_exactly_and_cheaply() {
    count_all(&program(Path::new(SAMPLE)));
}

#[test]
fn this_test_is_counted_exactly_and_cheaply() {
    count_all(&program(&std::env::current_exe().unwrap()));
}

fn count_all(program: &Program) {
    let (mut estimator, mut placer, mut solver) = (Estimator::default(), Placer::default(), Solver::default());
    let (mut estimated, mut profiled, mut expected) = (Cost::default(), Cost::default(), Cost::default());
    let (mut every_block, mut few_jumps) = (Cost::default(), Cost::default());
    let mut frugal = Placer::with_jump_price(1.0);
    for (seed, func) in program.funcs().iter().filter(|func| !func.entries.is_empty()).enumerate() {
        let truth = visit(func, seed as u64);
        let weights = estimator.estimate(func).clone();
        let placement = placer.place(func, &weights, &[], &[], &[]);
        let solved = solver.solve(func, &placement, &truth.counters(&placement));
        assert!(solved.is_ok_and(|counts| truth.is_told_by(&counts)), "{}", func.entry);
        estimated += Cost::measured(func, &placement, &truth.counts);
        expected += Cost::expected(func, &placement, &weights);

        let second = placer.place(func, &Weights::from_profile(&truth.counts, &weights), &[], &[], &[]);
        let cost = Cost::measured(func, &second, &truth.counts);
        let first = Cost::measured(func, &placement, &truth.counts);
        assert!(cost.increments <= first.increments, "{}: a profile makes it dearer", func.entry);
        assert_eq!(second.counters.len(), placement.counters.len());
        profiled += cost;
        every_block += Cost::measured(func, &Placement::every_block(func), &truth.counts);
        few_jumps += Cost::expected(func, &frugal.place(func, &weights, &[], &[], &[]), &weights);
    }
    assert_eq!(every_block.share(), Some(1.0));
    assert_eq!(few_jumps.sites, expected.sites);
    assert!(few_jumps.new_blocks < expected.new_blocks && few_jumps.increments >= expected.increments);
    let shares = [expected, estimated, profiled].map(|cost| cost.share().unwrap());
    assert!(shares.iter().all(|share| *share < 0.75) && shares[2] < shares[1], "{shares:?}");
}

#[test]
fn errors_name_the_function_and_the_place() {
    let program = program(Path::new(SAMPLE));
    let (mut estimator, mut placer, mut solver) = (Estimator::default(), Placer::default(), Solver::default());
    let mut impossible_edges = 0;
    for (seed, func) in program.funcs().iter().filter(|func| !func.entries.is_empty()).enumerate() {
        let truth = visit(func, seed as u64);
        let placement = placer.place(func, estimator.estimate(func), &[], &[], &[]);
        let mut counters = truth.counters(&placement);
        assert!(matches!(
            solver.solve(func, &placement, &counters[1..]),
            Err(FlowError::WrongNumber { slots, counters, .. }) if slots == counters + 1
        ));
        for wrong in 0..counters.len() {
            counters[wrong] += 1_000_000;
            if let Err(error @ FlowError::Impossible { place: Place::Edge { from, to }, .. }) =
                solver.solve(func, &placement, &counters)
            {
                let text = error.to_string();
                let named = [func.entry, from, to].iter().all(|at| text.contains(&at.to_string()));
                assert!(named && text.contains("-"), "{text}");
                impossible_edges += 1;
            }
            counters[wrong] -= 1_000_000;
        }
    }
    assert!(impossible_edges > 0);
}
