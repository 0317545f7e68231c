//! Functions that never return.
//!
//! What stands behind a call that does not come back is other code, or none. Some functions are known by the names
//! that libraries document; the rest is a fixpoint over the control flow. At first every other function is taken to
//! return; one is found not to when no return, no tail call and no unknown jump can be reached in it without passing
//! a call that does not come back.

use lancet_isa::{Svma, Target};
use rayon::prelude::*;

use super::discover::{Discovery, NONE, Region, is_padding};
use super::region::End;

/// Documented never to return, by the C, POSIX, C++ ABI, unwinder and Rust run-time interfaces.
const NAMES: &[&str] = &[
    "_Exit",
    "_Unwind_Resume",
    "__assert",
    "__assert_fail",
    "__assert_perror_fail",
    "__chk_fail",
    "__cxa_bad_cast",
    "__cxa_bad_typeid",
    "__cxa_call_terminate",
    "__cxa_call_unexpected",
    "__cxa_deleted_virtual",
    "__cxa_pure_virtual",
    "__cxa_rethrow",
    "__cxa_throw",
    "__cxa_throw_bad_array_length",
    "__cxa_throw_bad_array_new_length",
    "__fortify_fail",
    "__libc_fatal",
    "__longjmp_chk",
    "__rust_start_panic",
    "__stack_chk_fail",
    "_exit",
    "_longjmp",
    "abort",
    "err",
    "errx",
    "exit",
    "longjmp",
    "pthread_exit",
    "quick_exit",
    "rust_begin_unwind",
    "siglongjmp",
    "thrd_exit",
    "verr",
    "verrx",
];

/// Mangled C++ functions of the standard library that only throw or terminate.
const PREFIXES: &[&str] =
    &["_ZSt9terminatev", "_ZSt10unexpectedv", "_ZSt17rethrow_exception", "_ZSt25__throw_bad_function_call"];

pub(super) fn is_noreturn_name(name: &str) -> bool {
    NAMES.binary_search(&name).is_ok()
        || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        || is_throw_helper(name)
}

/// `std::__throw_length_error(char const*)` and its kin: `_ZSt<length>__throw_...`.
fn is_throw_helper(name: &str) -> bool {
    name.strip_prefix("_ZSt")
        .is_some_and(|rest| rest.trim_start_matches(|c: char| c.is_ascii_digit()).starts_with("__throw_"))
}

/// What happens when a region runs.
struct Run {
    reached: Vec<bool>,
    returning: Vec<bool>,
    /// Can it return to its caller?
    returns: bool,
}

impl Discovery<'_> {
    /// Settles which regions return, for those that changed and those that depend on them.
    pub(super) fn settle_noreturn(&mut self) {
        let starts: Vec<Svma> = self.regions.iter().map(Region::start).collect();
        let index = |at: Svma| starts.binary_search(&at).map_or(NONE, |i| i as u32);
        let moved = std::mem::replace(&mut self.renumbered, false);
        self.regions.par_iter_mut().filter(|region| moved || region.fresh).for_each(|region| {
            region.callees.clear();
            region.callees.extend(region.cfg.blocks.iter().map(|block| match block.end {
                End::Call { to: Target::Direct(to), .. } => index(to),
                _ => NONE,
            }));
        });
        let mut noreturn: Vec<bool> = self.regions.iter().map(|region| region.noreturn).collect();
        let mut pending: Vec<u32> = (0..starts.len() as u32).filter(|i| self.regions[*i as usize].fresh).collect();
        while !pending.is_empty() {
            let this = &*self;
            let results: Vec<Run> =
                pending.par_iter().map(|&i| this.run(&this.regions[i as usize], &noreturn)).collect();
            let mut changed = vec![false; self.regions.len()];
            for (i, run) in pending.iter().zip(results) {
                let i = *i as usize;
                let region = &mut self.regions[i];
                region.fresh |= region.reached != run.reached;
                region.reached = run.reached;
                region.returning = run.returning;
                noreturn[i] = !run.returns;
                changed[i] = std::mem::replace(&mut region.was_noreturn, noreturn[i]) != noreturn[i];
            }
            if !changed.contains(&true) {
                break;
            }
            let this = &*self;
            pending = (0..self.regions.len() as u32)
                .into_par_iter()
                .filter(|&i| this.depends_on(&this.regions[i as usize], &changed))
                .collect();
        }
        for (region, noreturn) in self.regions.iter_mut().zip(noreturn) {
            region.noreturn = noreturn;
        }
    }

    /// What of the region can run, and whether it can return.
    fn run(&self, region: &Region, noreturn: &[bool]) -> Run {
        let cfg = &region.cfg;
        let returning = (0..cfg.blocks.len()).map(|i| self.call_returns(region, i, noreturn)).collect::<Vec<_>>();
        // Decoding followed every call: where all return, everything found can run.
        let reached = if returning.iter().all(|returns| *returns) {
            vec![true; cfg.blocks.len()]
        } else {
            cfg.reachable(&region.all_entries(), &returning)
        };
        let mut returns = cfg.blocks.is_empty();
        for (block, _) in cfg.blocks.iter().zip(&reached).filter(|(_, reached)| **reached) {
            returns |= match block.end {
                End::Return | End::Pointer | End::Unresolved => true,
                End::Slot(slot) => !self.image.slot_name(slot).is_some_and(is_noreturn_name),
                End::Call { .. } | End::Stop | End::Bad(_) => false,
                End::Fall(_) | End::Jump(_) | End::Branch { .. } | End::Repeat { .. } | End::Tables => {
                    let mut leaves = false;
                    cfg.successors(block, &mut |to| {
                        leaves |= !region.contains(to) && self.containing(to).is_none_or(|q| !noreturn[q]);
                    });
                    leaves
                }
            };
        }
        Run { reached, returning, returns: returns && !region.named_noreturn }
    }

    fn call_returns(&self, region: &Region, block: usize, noreturn: &[bool]) -> bool {
        let End::Call { to, next } = region.cfg.blocks[block].end else { return true };
        let callee_returns = match to {
            Target::Direct(_) => match region.callees[block] {
                NONE => true,
                callee => !noreturn[callee as usize],
            },
            Target::Slot(slot) => !self.image.slot_name(slot).is_some_and(is_noreturn_name),
            Target::Computed => true,
        };
        callee_returns && !self.is_end(region, block + 1, next)
    }

    /// Is there nothing but padding from here (probably the `likely` block) to the end of the region? A call before it
    /// cannot come back.
    fn is_end(&self, region: &Region, likely: usize, at: Svma) -> bool {
        let Some(part) = region.parts.iter().find(|part| part.contains(at)) else { return true };
        let Some(i) = region.cfg.block_near(likely, at) else { return true };
        let block = &region.cfg.blocks[i];
        block.end == End::Fall(part.end) && is_padding(self.image, block.start, block.end_address())
    }

    fn depends_on(&self, region: &Region, changed: &[bool]) -> bool {
        if region.callees.iter().any(|&callee| callee != NONE && changed[callee as usize]) {
            return true;
        }
        let mut found = false;
        for block in &region.cfg.blocks {
            if !matches!(block.end, End::Call { .. }) {
                region.cfg.successors(block, &mut |to| {
                    found |= !region.contains(to) && self.containing(to).is_some_and(|q| changed[q]);
                });
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted() {
        assert!(NAMES.is_sorted());
    }

    #[test]
    fn throw_helpers_are_known() {
        assert!(is_noreturn_name("_ZSt20__throw_length_errorPKc"));
        assert!(!is_noreturn_name("_ZSt4endlIcSt11char_traitsIcEE"));
        assert!(is_noreturn_name("exit") && !is_noreturn_name("exitable"));
    }
}
