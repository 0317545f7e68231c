//! Where an indirect jump goes.
//!
//! Compilers turn `switch` into a bounds check, a load from a table of addresses or of offsets, and a jump. In
//! between stands whatever the optimizer left there: the check may be blocks away and on another register, the
//! table's address hoisted out of a loop, the index in a stack slot.
//!
//! So the jump's target is followed backwards as an [expression](super::expr) along every path, each instruction
//! substituting what it computes. When it has the shape of a table access, the index is followed on, together
//! with the conditions of the branches passed on the way; all of them speak of values at the same point, so a
//! condition bounds the index as soon as both have the same form, through whatever registers they went.
//! A path that bounds nothing leaves the table *open*: its size then comes from its content, and says so.
//!
//! Nothing is taken from the order of sections or from instruction patterns.

use std::cell::{Cell, RefCell};
use std::mem;
use std::rc::Rc;

use lancet_isa::value::{Expr, Place, Values};
use lancet_isa::{Facts, Flow, Insn, Isa, Reg, RegSet, Svma};
use rustc_hash::FxHashMap;

use super::bounds::{Condition, Limit, Needs, Span, Term, bounded, masked};
use super::constants::Constants;
use super::expr::{Linear, Substituted, any_part, extend, simplify, substitute, upper_bound};
use super::table::{Bound, JumpTable, MAX_ENTRIES, first_behind, read_entry};
use super::ways::{Blocks, Via, Ways};
use crate::image::Image;

/// Blocks walked for one jump before it is given up. Real switches need a few; a pointer that is no table's could be
/// followed through the whole function.
pub(super) const MAX_WALKS: usize = 400;
/// Blocks walked to find what bounds an index, in all, and one behind the other: the check stands close to the jump.
const MAX_INDEX_WALKS: usize = 64;
/// The same for all tables of one jump: an interpreter's may be reached from a hundred places, each with its own index.
const MAX_ALL_INDEX_WALKS: usize = 4096;
const MAX_INDEX_DEPTH: usize = 32;
/// ... and where the index is in memory, which compilers check right before they load it.
const MAX_INDEX_DEPTH_IN_MEMORY: usize = 8;
/// Conditions remembered on a path.
const MAX_CONDITIONS: usize = 8;
/// No structure with a label in it is larger.
const MAX_STRIDE: u64 = 128;

/// How far to read tables whose size no check tells. The code that the first entries lead to mentions most of what stands
/// behind a table, so there is no hurry.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Depth {
    /// A few entries: a compiler makes no smaller tables.
    Sure,
    /// To where something else seems to begin.
    Likely,
    /// As far as their content makes sense.
    All,
}

impl Depth {
    pub(super) fn next(self) -> Option<Depth> {
        match self {
            Depth::Sure => Some(Depth::Likely),
            Depth::Likely => Some(Depth::All),
            Depth::All => None,
        }
    }
}

const SURE_ENTRIES: u64 = 4;

/// The blocks that an indirect jump is looked at in.
pub(super) struct View<'a> {
    pub(super) isa: &'static dyn Isa,
    pub(super) image: &'a Image,
    pub(super) insns: &'a [Insn],
    pub(super) blocks: &'a dyn Blocks,
    pub(super) ways: &'a Ways,
    /// Addresses in data where something else begins, sorted: a table does not go on past one.
    pub(super) stops: &'a [Svma],
    /// The first of more such addresses behind one; they are dear to find.
    pub(super) data_behind: &'a dyn Fn(Svma) -> Option<Svma>,
    /// ... and of places where something may begin, going by the bytes of code that was not decoded yet.
    pub(super) likely_behind: &'a dyn Fn(Svma) -> Option<Svma>,
    /// How far to read tables whose size no check tells, and whether one may go on behind.
    pub(super) depth: Depth,
    pub(super) has_more: Cell<bool>,
    pub(super) computed: &'a Computed,
}

/// What instructions compute, simplified, by their place in [`View::insns`]: jumps of one function are followed through
/// the same blocks.
#[derive(Default)]
pub(super) struct Computed(RefCell<FxHashMap<usize, Rc<Values>>>);

impl Computed {
    pub(super) fn clear(&mut self) {
        self.0.get_mut().clear();
    }
}

impl<'a> View<'a> {
    /// The instructions of a block, in order.
    pub(super) fn block(&self, block: usize) -> &'a [Insn] {
        &self.insns[self.ways.insns(block)]
    }

    /// The block that starts at an offset.
    pub(super) fn block_at(&self, leader: u32) -> usize {
        self.ways.number(leader, self.blocks)
    }

    /// The blocks before one, and how control comes from there.
    pub(super) fn before(&self, block: usize) -> Rc<[(u32, Via)]> {
        self.ways.before(block, self.blocks)
    }

    /// What an instruction of a block computes, simplified.
    pub(super) fn values(&self, block: usize, i: usize) -> Rc<Values> {
        let place = self.ways.insns(block).start + i;
        let compute = || {
            let insn = &self.insns[place];
            let mut values = code(self, insn).map_or_else(Values::default, |code| self.isa.values(code, insn.at));
            for set in &mut values.sets {
                set.value = simplify(mem::replace(&mut set.value, Expr::Opaque));
                if let Place::Memory { addr, .. } = &mut set.dst {
                    *addr = simplify(mem::replace(addr, Expr::Opaque));
                }
            }
            Rc::new(values)
        };
        Rc::clone(self.computed.0.borrow_mut().entry(place).or_insert_with(compute))
    }
}

#[derive(Debug)]
pub(super) enum Resolution {
    /// Through tables, or to labels whose address the code takes.
    Found { tables: Vec<JumpTable>, labels: Vec<Svma> },
    /// The target comes from memory or a register with no index: a pointer.
    Pointer,
    /// It is read from an array whose entries are not in this function: an array of function pointers.
    PointerArray,
    /// It has an index, and could not be followed to a table.
    Unknown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Shape {
    at: u64,
    entry_bits: u8,
    scale: u64,
    base: Option<u64>,
}

impl Shape {
    /// Is it a field of an array of structures?
    fn is_field(&self) -> bool {
        self.scale != u64::from(self.entry_bits / 8)
    }
}

#[derive(Clone, PartialEq)]
enum Goal {
    Target(Term),
    Index(Shape, Term),
}

impl Goal {
    fn term(&self) -> &Term {
        match self {
            Goal::Target(term) | Goal::Index(_, term) => term,
        }
    }

    fn term_mut(&mut self) -> &mut Term {
        match self {
            Goal::Target(term) | Goal::Index(_, term) => term,
        }
    }
}

#[derive(Clone)]
struct State {
    goal: Goal,
    conditions: Vec<Condition>,
    /// Blocks walked since the goal is an index.
    index_depth: usize,
    /// The goal has changed since it was last compared with the conditions.
    is_new: bool,
}

impl State {
    fn max_index_depth(&self) -> usize {
        if self.goal.term().needs.memory { MAX_INDEX_DEPTH_IN_MEMORY } else { MAX_INDEX_DEPTH }
    }

    fn needs(&self) -> Needs {
        self.conditions.iter().fold(self.goal.term().needs, |needs, condition| needs.and(condition.needs()))
    }
}

struct Search<'a> {
    view: &'a View<'a>,
    /// The states at the start of blocks from which several ways were followed on.
    seen: Vec<(usize, Rc<State>)>,
    /// Those of them that are on the path that is being walked.
    path: Vec<(usize, Rc<State>)>,
    /// All blocks that were looked at.
    visited: Vec<usize>,
    origins: Origins,
    constants: Constants,
    walks: usize,
    index_walks: usize,
    all_index_walks: usize,
    /// A path left the index that is followed unbounded: nothing more can be learnt of it.
    open: bool,
}

/// Where a jump's target comes from, on all paths.
#[derive(Default)]
pub(super) struct Origins {
    /// A table access with the range of its index, for every path.
    found: Vec<(Shape, Span)>,
    /// Addresses that the target is on some path.
    labels: Vec<Svma>,
    /// Some path ended before the target had the shape of a table access.
    lost: bool,
    /// ... and the target was computed with an index there.
    lost_indexed: bool,
    /// The jump itself is not modelled.
    unknown: bool,
}

/// May the function continue there? That depends on what limits the index: what is read past the end of a table must not pass
/// for a target in some other part of the text.
pub(super) type IsTarget<'a> = dyn Fn(Svma, Limit) -> bool + 'a;

/// Follows the target of the indirect jump that ends `block`. Also tells the blocks that were looked at.
pub(super) fn follow(view: &View<'_>, block: usize) -> (Origins, Vec<usize>) {
    let mut search = Search {
        view,
        seen: Vec::new(),
        path: Vec::new(),
        visited: Vec::new(),
        origins: Origins::default(),
        constants: Constants::default(),
        walks: 0,
        index_walks: 0,
        all_index_walks: 0,
        open: false,
    };
    let jump = view.block(block).last();
    match jump.and_then(|jump| view.isa.jump_target(code(view, jump)?, jump.at)) {
        Some(target) => {
            let goal = Goal::Target(Term::new(simplify(target)));
            search.walk(
                block,
                view.block(block).len() - 1,
                State { goal, conditions: Vec::new(), index_depth: 0, is_new: true },
            );
        }
        None => search.origins.unknown = true,
    }
    search.visited.sort_unstable();
    search.visited.dedup();
    (search.origins, search.visited)
}

pub(super) fn code<'a>(view: &View<'a>, insn: &Insn) -> Option<&'a [u8]> {
    view.image.bytes(insn.at, u64::from(insn.len))
}

impl Search<'_> {
    /// Follows `state`, which holds before instruction `upto` of `block`, backwards along all paths.
    fn walk(&mut self, mut block: usize, mut upto: usize, mut state: State) {
        while !self.open && self.walk_block(block, upto, &mut state) {
            let preds = self.view.before(block);
            if self.is_spent() || state.index_depth >= state.max_index_depth() || preds.is_empty() {
                return self.give_up(&state);
            }
            let [(pred, via)] = preds[..] else { return self.fork(block, state) };
            // A loop has a block with several ways into it, which is where it is noticed that nothing is new.
            match self.enter(pred as usize, via, &mut state) {
                Some(before) => (block, upto) = (pred as usize, before),
                None => return,
            }
        }
    }

    /// Makes `state` the one at the start of the block. `false`: there is no need to go on.
    fn walk_block(&mut self, block: usize, upto: usize, state: &mut State) -> bool {
        self.visited.push(block);
        let on_index = usize::from(matches!(state.goal, Goal::Index(..)));
        self.walks += 1 - on_index;
        self.index_walks += on_index;
        self.all_index_walks += on_index;
        state.index_depth += on_index;
        // An index is settled where it or a condition changes, which is not here.
        if matches!(state.goal, Goal::Target(_)) && self.settle(block, upto, state) {
            return false;
        }
        let flags = self.view.isa.facts().flags;
        let mut needs = state.needs();
        for (i, insn) in self.view.block(block)[..upto].iter().enumerate().rev() {
            let touches = insn.effects.writes.intersects(needs.regs)
                || needs.comparison && insn.effects.writes.intersects(flags)
                || needs.memory && insn.stores;
            if !touches {
                continue;
            }
            if !self.step_back(block, i, state) {
                self.give_up(state);
                return false;
            }
            if self.settle(block, i, state) {
                return false;
            }
            state.conditions.retain(|c| c.may_bound() && !c.needs().opaque);
            if state.goal.term().needs.opaque {
                self.give_up(state);
                return false;
            }
            needs = state.needs();
        }
        true
    }

    /// Goes on from the start of a block with several ways into it.
    fn fork(&mut self, block: usize, mut state: State) {
        // Round a loop that leaves the goal as it is, there is nothing that is not also on the way into the loop. But a
        // condition that changed holds for one number of rounds only, and on the way in for none.
        if let Some((_, before)) =
            self.path.iter().rev().find(|(at, state_there)| *at == block && state_there.goal == state.goal)
        {
            if before.conditions.iter().all(|c| state.conditions.contains(c)) {
                return;
            }
            state.conditions.retain(|c| before.conditions.contains(c));
        }
        // More conditions than another time can only bound the index as well or better, and the widest range counts.
        let mut before = self.seen.iter().filter(|(at, seen)| *at == block && seen.goal == state.goal);
        if before.any(|(_, seen)| seen.conditions.iter().all(|c| state.conditions.contains(c))) {
            return;
        }
        let state = Rc::new(state);
        self.seen.push((block, Rc::clone(&state)));
        self.path.push((block, Rc::clone(&state)));
        for &(pred, via) in self.view.before(block).iter() {
            // A block may have thousands of ways into it.
            if self.is_spent() {
                self.give_up(&state);
                break;
            }
            let mut state = (*state).clone();
            if let Some(upto) = self.enter(pred as usize, via, &mut state) {
                self.walk(pred as usize, upto, state);
            }
        }
        self.path.pop();
    }

    /// Have enough blocks been walked, or would more of them change nothing?
    fn is_spent(&self) -> bool {
        let is_enough = self.walks >= MAX_WALKS || self.all_index_walks >= MAX_ALL_INDEX_WALKS;
        self.open || is_enough || self.index_walks >= MAX_INDEX_WALKS
    }

    /// Makes the state at the start of a block the one at the end of a block before it, and tells how many of its
    /// instructions are still to be stepped over. `None`: there is no need to.
    fn enter(&mut self, pred: usize, via: Via, state: &mut State) -> Option<usize> {
        // A limit is loaded next to the comparison, if it is no part of it.
        state.conditions.retain(Condition::has_limit);
        let last = self.view.block(pred).last()?;
        let count = self.view.block(pred).len();
        match via {
            // The instruction before the edge is an ordinary one: it is stepped over like the others.
            Via::Other if !last.flow.ends_block() => return Some(count),
            Via::Other => {}
            Via::AfterCall => {
                let lost = overwritten_by_calls(self.view.isa.facts());
                if !keep_what_survives(state, lost, true, true, self.view.isa.facts()) {
                    self.give_up(state);
                    return None;
                }
            }
            Via::Taken | Via::NotTaken => {
                let guard = code(self.view, last).and_then(|code| self.view.isa.guard(code, last.at));
                if let Some(guard) = guard {
                    let relation = if via == Via::Taken { guard.relation } else { guard.relation.negated() };
                    let (left, right) = (Term::new(guard.left), Term::new(guard.right));
                    let condition = Condition { relation, left, right, is_new: true };
                    if condition.may_bound() && !state.conditions.contains(&condition) {
                        if state.conditions.len() == MAX_CONDITIONS {
                            state.conditions.remove(0);
                        }
                        state.conditions.push(condition);
                    }
                }
            }
        }
        Some(count - 1)
    }

    /// Makes the state behind an instruction the one before it. `false`: the goal depends on something not modelled.
    fn step_back(&self, block: usize, i: usize, state: &mut State) -> bool {
        let insn = &self.view.block(block)[i];
        let values = self.view.values(block, i);
        let mut written = insn.effects.writes;
        let mut compared = insn.effects.writes.intersects(self.view.isa.facts().flags);
        for set in &values.sets {
            if let Place::Reg(reg) = set.dst {
                written = written.without(RegSet::of(reg));
                if reg == Reg::COMPARED {
                    compared = false;
                }
            }
        }
        let called = matches!(insn.flow, Flow::System);
        if !keep_what_survives(state, written, compared, called, self.view.isa.facts()) {
            return false;
        }
        if values.sets.is_empty() {
            return true;
        }
        let with = |part: &Expr| {
            values.sets.iter().find_map(|set| match (&set.dst, part) {
                (Place::Reg(dst), Expr::Reg(reg)) if dst == reg => Some(set.value.clone()),
                (Place::Memory { addr, bits: stored }, Expr::Load { addr: from, bits }) => {
                    (stored >= bits && *addr == **from).then(|| extend(set.value.clone(), *bits, false))
                }
                _ => None,
            })
        };
        // Most conditions are about something else, and stay as they are. `false`: it has grown too large.
        let go_before = |term: &mut Term, is_new: &mut bool| {
            if !values.sets.iter().any(|set| term.needs.depends_on_place(&set.dst)) {
                return true;
            }
            match substitute(&term.expr, &with) {
                Substituted::Same => return true,
                Substituted::New(before) => *term = Term::new(before),
                Substituted::TooLarge => return false,
            }
            *is_new = true;
            true
        };
        state
            .conditions
            .retain_mut(|c| go_before(&mut c.left, &mut c.is_new) && go_before(&mut c.right, &mut c.is_new));
        go_before(state.goal.term_mut(), &mut state.is_new)
    }

    /// Has the goal been reached? A target that became a table access goes on as its index.
    fn settle(&mut self, block: usize, upto: usize, state: &mut State) -> bool {
        let target = match &state.goal {
            Goal::Target(target) => target,
            Goal::Index(shape, index) => {
                let to_compare = |c: &&Condition| state.is_new || c.is_new;
                let is_settled = self.settle_index(*shape, &index.expr, state.conditions.iter().filter(to_compare));
                state.conditions.iter_mut().for_each(|c| c.is_new = false);
                state.is_new = false;
                return is_settled;
            }
        };
        let target = &*target.expr;
        if let Expr::Const(at) = *target {
            self.origins.labels.push(Svma(at));
            return true;
        }
        // The table's address often comes from far away: look for it apart from the index.
        let access = self.table_access(target).or_else(|| {
            let mut resolved = target.clone();
            for base in base_registers(target) {
                let at = self.constants.find(self.view, base, block, upto, &mut self.visited)?;
                let with = |part: &Expr| (*part == Expr::Reg(base)).then_some(Expr::Const(at));
                match substitute(&resolved, &with) {
                    Substituted::Same => {}
                    Substituted::New(new) => resolved = new,
                    Substituted::TooLarge => return None,
                }
            }
            self.table_access(&resolved)
        });
        let Some((shape, index)) = access else { return false };
        if !self.settle_index(shape, &index, state.conditions.iter()) {
            // On another path the target may come from another table, which is looked for whatever is found here.
            let goal = Goal::Index(shape, Term::new(index));
            self.walk(block, upto, State { goal, conditions: state.conditions.clone(), index_depth: 0, is_new: false });
            self.open = false;
            self.index_walks = 0;
        }
        true
    }

    /// Do the conditions bound the index, or does it itself?
    fn settle_index<'c>(
        &mut self,
        shape: Shape,
        index: &Expr,
        conditions: impl Iterator<Item = &'c Condition>,
    ) -> bool {
        let checked = bounded(index, conditions).map(|range| Span { range, by: Limit::Check });
        let span = checked.or_else(|| Some(Span { range: masked(index)?, by: Limit::Mask }));
        self.origins.found.extend(span.filter(|span| span.range.0 <= span.range.1).map(|span| (shape, span)));
        span.is_some()
    }

    /// The end of a path that reached no bound.
    fn give_up(&mut self, state: &State) {
        match &state.goal {
            Goal::Target(target) => {
                self.origins.lost = true;
                self.origins.lost_indexed |= is_indexed(&target.expr);
            }
            Goal::Index(shape, index) => {
                self.open = true;
                self.origins.found.push((*shape, Span { range: (0, index_limit(&index.expr)), by: Limit::Width }));
            }
        }
    }

    /// `Load(T + scale * index)`, or `B + sign-extended Load(T + scale * index)`, with `T` in the file.
    fn table_access(&self, target: &Expr) -> Option<(Shape, Expr)> {
        let (load, base) = match target {
            Expr::Load { .. } => (target, None),
            _ => {
                let sum = Linear::of(target);
                let [(entry, 1)] = sum.terms[..] else { return None };
                match entry {
                    Expr::Extend { value, bits: 32, signed: true } => (&**value, Some(sum.constant)),
                    Expr::Load { bits: 8 | 16 | 32, .. } if sum.constant != 0 => (entry, Some(sum.constant)),
                    Expr::Load { bits: 32, .. } => (entry, None),
                    _ => return None,
                }
            }
        };
        let Expr::Load { addr, bits } = load else { return None };
        let sum = Linear::of(addr);
        let [(index, scale)] = sum.terms[..] else { return None };
        let entry_bytes = u64::from(bits / 8);
        let in_file = self.view.image.bytes(Svma(sum.constant), entry_bytes).is_some();
        // An index that is scaled already has its own steps: `lea 0(,%rax,4)`, then `(%rdx,%rcx)`. Labels may also stand in
        // an array of structures.
        let is_pointer = base.is_none() && *bits == self.view.isa.facts().pointer_bytes * 8;
        let is_field = is_pointer && scale % entry_bytes == 0 && (entry_bytes..=MAX_STRIDE).contains(&scale);
        ((scale == entry_bytes || is_field) && in_file)
            .then(|| (Shape { at: sum.constant, entry_bits: *bits, scale, base }, index.clone()))
    }
}

/// The last entry that an index could mean if nothing bounds it.
fn index_limit(index: &Expr) -> i64 {
    upper_bound(index).min(MAX_ENTRIES) as i64
}

/// Where a jump goes, given where its target comes from.
pub(super) fn conclude(view: &View<'_>, jump: Svma, origins: &Origins, is_target: &IsTarget<'_>) -> Resolution {
    if origins.unknown {
        return Resolution::Unknown;
    }
    let on_target = origins.labels.iter().all(|at| is_target(*at, Limit::Width));
    let mut shapes: Vec<(Shape, Span)> = Vec::new();
    for (shape, span) in &origins.found {
        match shapes.iter_mut().find(|(known, _)| known == shape) {
            Some((_, known)) => *known = known.and(*span),
            None => shapes.push((*shape, *span)),
        }
    }
    let mut tables = Vec::new();
    // A pointer in a structure is mostly one to a function.
    let fields = shapes.extract_if(.., |(shape, _)| shape.is_field());
    let fields: Vec<Option<JumpTable>> = fields
        .map(|(shape, span)| view.read_table(jump, shape, span, is_target).filter(|t| view.are_labels(t)))
        .collect();
    let lost = origins.lost || fields.iter().any(Option::is_none);
    tables.extend(fields.into_iter().flatten());
    if shapes.is_empty() && tables.is_empty() && (origins.labels.is_empty() || lost || !on_target) {
        return if origins.lost_indexed { Resolution::Unknown } else { Resolution::Pointer };
    }
    if lost || !on_target {
        return Resolution::Unknown;
    }
    for (shape, span) in shapes {
        match view.read_table(jump, shape, span, is_target) {
            Some(table) => tables.push(table),
            // Not even its first entry is in the function: these are pointers to functions, or none.
            None if shape.base.is_none() && view.is_pointer(shape) => return Resolution::PointerArray,
            None => return Resolution::Unknown,
        }
    }
    let mut labels = origins.labels.clone();
    labels.sort_unstable();
    labels.dedup();
    Resolution::Found { tables, labels }
}

impl View<'_> {
    fn read_table(&self, jump: Svma, shape: Shape, span: Span, is_target: &IsTarget<'_>) -> Option<JumpTable> {
        let (mut first, last) = span.range;
        // Where nothing tells the first index, and part of it is in the address, a table of offsets still starts at its
        // base, unless they are relative to code.
        let before_base = shape.base.map_or(0, |base| base.wrapping_sub(shape.at) / shape.scale);
        let is_start = shape.base.is_some_and(|base| !self.image.is_code(Svma(base)));
        if span.by == Limit::Width && is_start && before_base <= MAX_ENTRIES {
            first = first.max(before_base as i64);
        }
        let at = Svma(shape.at.wrapping_add((first as u64).wrapping_mul(shape.scale)));
        let (stop, whole) = match span.by {
            Limit::Check => (None, Bound::Checked),
            Limit::Mask | Limit::Width => {
                let stops = [first_behind(self.stops, at), (self.data_behind)(at)];
                (stops.into_iter().flatten().min(), Bound::Masked)
            }
        };
        let pause = match self.depth {
            _ if span.by == Limit::Check => None,
            Depth::Sure => Some(at + SURE_ENTRIES * shape.scale),
            Depth::Likely => (self.likely_behind)(at),
            Depth::All => None,
        };
        // What leads into the function somewhere is no array of pointers to functions.
        let is_label = |i| {
            let target = self.read_entry(shape, at + i * shape.scale);
            target.is_some_and(|to| {
                is_target(to, Limit::Width) && self.image.fde_at(to).is_none_or(|fde| fde.start != to)
            })
        };
        let count = (last.saturating_sub(first).max(0) as u64).min(MAX_ENTRIES) + 1;
        let by = if span.by == Limit::Check && !(0..count).any(is_label) { Limit::Mask } else { span.by };
        let mut targets = Vec::new();
        let mut bound = whole;
        for i in 0..count {
            let entry = at + i.wrapping_mul(shape.scale);
            let past_stop = stop.is_some_and(|stop| entry >= stop);
            if !past_stop && pause.is_some_and(|pause| entry >= pause) {
                self.has_more.set(true);
                bound = Bound::Content;
                break;
            }
            match self.read_entry(shape, entry) {
                Some(target) if !past_stop && is_target(target, by) => targets.push(target),
                _ => {
                    let is_checked = span.by == Limit::Check;
                    bound = if is_checked { Bound::Cut { allowed: count as u32 } } else { Bound::Content };
                    break;
                }
            }
        }
        if targets.is_empty() {
            return None;
        }
        let base = shape.base.map(Svma);
        let (entry_bytes, stride) = (shape.entry_bits / 8, shape.scale as u8);
        Some(JumpTable { jump, at, entry_bytes, stride, base, targets: targets.into(), bound })
    }

    fn read_entry(&self, shape: Shape, at: Svma) -> Option<Svma> {
        read_entry(self.image, at, shape.entry_bits / 8, shape.base.map(Svma))
    }

    /// Is nothing in a table the start of a function? Only unwind tables tell that for sure.
    fn are_labels(&self, table: &JumpTable) -> bool {
        let is_inside = |at: Svma| self.image.fde_at(at).is_some_and(|fde| fde.start != at);
        table.targets.iter().all(|at| is_inside(*at) && self.image.symbols_at(*at).is_empty())
    }

    fn is_pointer(&self, shape: Shape) -> bool {
        shape.entry_bits == self.isa.facts().pointer_bytes * 8
    }
}

/// The registers that are added, unscaled: to a scaled one in the address of a table's entry, and to the entry.
fn base_registers(target: &Expr) -> Vec<Reg> {
    let mut bases = Vec::new();
    let mut add = |terms: &[(&Expr, u64)]| {
        let scaled = terms.iter().any(|(atom, factor)| *factor != 1 || !matches!(atom, Expr::Reg(_)));
        for (atom, factor) in terms {
            if let (Expr::Reg(reg), 1, true) = (atom, factor, scaled)
                && !bases.contains(reg)
            {
                bases.push(*reg);
            }
        }
    };
    let sum = Linear::of(target);
    add(&sum.terms);
    // The outermost access is the table's; its index may come from an array of its own.
    for (atom, _) in &sum.terms {
        let entry = match atom {
            Expr::Extend { value, .. } => value,
            other => *other,
        };
        if let Expr::Load { addr, .. } = entry {
            add(&Linear::of(addr).terms);
        }
    }
    bases
}

/// What is read behind a call without being set there was not changed by it: a compiler that knows the callee keeps
/// values in registers that the convention would let it change. Only results are new for sure.
pub(super) fn overwritten_by_calls(facts: &Facts) -> RegSet {
    facts.abi.results.without(facts.abi.preserved)
}

/// Drops conditions that depend on what was overwritten. `false`: the goal does. A call may write `memory`, also variables in
/// the frame whose address it was given. But a compiler spills the address of a table, and reloads it behind calls: what then
/// comes out shows that it was one.
fn keep_what_survives(state: &mut State, written: RegSet, compared: bool, memory: bool, facts: &Facts) -> bool {
    let frame = facts.abi.preserved | RegSet::of(facts.stack_pointer);
    let is_no_slot = |part: &Expr| match part {
        Expr::Load { addr, bits } => match Linear::of(addr).terms[..] {
            [(Expr::Reg(base), 1)] => !frame.contains(*base) || *bits != facts.pointer_bytes * 8,
            _ => true,
        },
        _ => false,
    };
    let is_lost = |term: &Term| term.needs.depends_on(written, compared) || memory && term.needs.memory;
    state.conditions.retain(|c| !is_lost(&c.left) && !is_lost(&c.right));
    match &state.goal {
        Goal::Target(term) => {
            let is_kept = !term.needs.depends_on(written, compared);
            is_kept && !(memory && term.needs.memory && any_part(&term.expr, &is_no_slot))
        }
        Goal::Index(_, term) => !is_lost(term),
    }
}

/// Could this be an entry of a jump table? Strides other than an entry's are those of arrays of structures.
fn is_indexed(target: &Expr) -> bool {
    let scaled = |load: &Expr| match load {
        Expr::Load { addr, bits } => Linear::of(addr).terms.iter().any(|(_, factor)| *factor == u64::from(bits / 8)),
        _ => false,
    };
    Linear::of(target).terms.iter().any(|(atom, _)| match atom {
        Expr::Extend { value, .. } => scaled(value),
        atom => scaled(atom),
    })
}
