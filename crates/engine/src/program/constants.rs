//! Constants that registers hold.
//!
//! The address of a jump table is often made far from the jump, before a loop. So it is looked for apart from the index:
//! from a use back to all definitions that reach it, of which each must give the same number.

use lancet_isa::value::{Expr, Place};
use lancet_isa::{Insn, Reg};
use rustc_hash::{FxHashMap, FxHashSet};

use super::expr::{Substituted, substitute, visit};
use super::jump_tables::{MAX_WALKS, View, overwritten_by_calls};
use super::ways::Via;

/// Registers that were found to hold no constant before a search looks for no more: the address of a table is found
/// at the first place where it is wanted, or soon after.
const MAX_FAILURES: usize = 16;

/// The constants that registers hold, as far as one jump asks for them.
#[derive(Default)]
pub(super) struct Constants {
    /// By register, block, and the number of instructions before.
    known: FxHashMap<(Reg, usize, usize), Option<u64>>,
    failures: usize,
}

impl Constants {
    /// The constant that a register holds before instruction `upto` of a block. Blocks that were looked at are added to
    /// `visited`.
    pub(super) fn find(
        &mut self,
        view: &View<'_>,
        reg: Reg,
        block: usize,
        upto: usize,
        visited: &mut Vec<usize>,
    ) -> Option<u64> {
        let written = view.block(block)[..upto].iter().rposition(|insn| insn.effects.writes.contains(reg));
        let upto = written.map_or(0, |i| i + 1);
        if let Some(known) = self.known.get(&(reg, block, upto)) {
            return *known;
        }
        if self.failures >= MAX_FAILURES {
            return None;
        }
        let found = Search::find(view, reg, block, upto, visited);
        self.failures += usize::from(found.is_none());
        self.known.insert((reg, block, upto), found);
        found
    }
}

/// Looks for the constant that a register holds, if every definition that reaches it gives the same one. It may be made
/// in steps (a half, then the other), so what is followed is an expression over one register.
struct Search<'a> {
    view: &'a View<'a>,
    /// The blocks in which the register itself is followed from the end, a bit for each: these are most.
    seen: Vec<u64>,
    /// Those in which an expression over some register is.
    seen_with: FxHashSet<(usize, Expr)>,
    /// How many there are of the latter, which alone could grow without end.
    walks: usize,
    value: Option<u64>,
}

impl Search<'_> {
    fn find(view: &View<'_>, reg: Reg, block: usize, upto: usize, visited: &mut Vec<usize>) -> Option<u64> {
        let mut search = Search { view, seen: Vec::new(), seen_with: FxHashSet::default(), walks: 0, value: None };
        search.walk(reg, block, upto, visited)?;
        search.value
    }

    /// `None`: some definition is not that constant.
    fn walk(&mut self, wanted: Reg, block: usize, upto: usize, visited: &mut Vec<usize>) -> Option<()> {
        let mut work = vec![(Expr::Reg(wanted), block, upto)];
        while let Some((expr, block, upto)) = work.pop() {
            visited.push(block);
            let reg = only_register(&expr)?;
            let writes = |insn: &&Insn| insn.effects.writes.contains(reg);
            match self.view.block(block)[..upto].iter().enumerate().rev().find(|(_, insn)| writes(insn)) {
                Some((i, _)) => {
                    let definition = self.definition(block, i, reg)?;
                    let with = |part: &Expr| (*part == Expr::Reg(reg)).then(|| definition.clone());
                    let Substituted::New(before) = substitute(&expr, &with) else { return None };
                    match before {
                        Expr::Const(value) if self.value.is_none_or(|known| known == value) => self.value = Some(value),
                        before => work.push((before, block, i)),
                    }
                }
                None => {
                    // A register that is counted up around a loop has a new expression every time.
                    let before = self.view.before(block);
                    if before.is_empty() || self.walks >= MAX_WALKS {
                        return None;
                    }
                    for &(pred, via) in before.iter() {
                        let lost = via == Via::AfterCall && overwritten_by_calls(self.view.isa.facts()).contains(reg);
                        if lost {
                            return None;
                        }
                        let pred = pred as usize;
                        if self.is_new(pred, &expr, wanted) {
                            work.push((expr.clone(), pred, self.view.block(pred).len()));
                        }
                    }
                }
            }
        }
        Some(())
    }

    fn is_new(&mut self, block: usize, expr: &Expr, wanted: Reg) -> bool {
        if *expr == Expr::Reg(wanted) {
            let bit = 1 << (block % 64);
            if self.seen.len() <= block / 64 {
                self.seen.resize(block / 64 + 1, 0);
            }
            let word = &mut self.seen[block / 64];
            let is_new = *word & bit == 0;
            *word |= bit;
            return is_new;
        }
        let is_new = self.seen_with.insert((block, expr.clone()));
        self.walks += usize::from(is_new);
        is_new
    }

    fn definition(&self, block: usize, i: usize, reg: Reg) -> Option<Expr> {
        let values = self.view.values(block, i);
        let set = values.sets.iter().find(|set| set.dst == Place::Reg(reg))?;
        Some(set.value.clone())
    }
}

/// The register that an expression is about, if that is one register and nothing else that may change.
fn only_register(expr: &Expr) -> Option<Reg> {
    let (mut only, mut other) = (None, false);
    visit(expr, &mut |part| match part {
        Expr::Reg(reg) => other |= only.replace(*reg).is_some_and(|known| known != *reg),
        Expr::Load { .. } | Expr::Opaque => other = true,
        _ => {}
    });
    only.filter(|_| !other)
}
