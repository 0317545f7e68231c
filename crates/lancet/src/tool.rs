//! Tools of one's own: what to add to a program, and what the counters then say.
//!
//! A [`Tool`] looks at functions and plans; it never sees registers, layout or files. [`run`] does the rest: it edits
//! the program into a temporary file, runs it in the user's name, and gives the counters back.
//!
//! ```no_run
//! use lancet::tool::{self, Counters, Site, Tool};
//! use lancet::plan::CounterId;
//!
//! /// How often is each function called?
//! struct Calls(Vec<(String, CounterId)>);
//!
//! impl Tool for Calls {
//!     fn instrument(&mut self, site: &mut Site<'_>) {
//!         let calls = site.counter();
//!         site.at_entry(calls);
//!         self.0.push((site.name(), calls));
//!     }
//!
//!     fn report(&self, counters: &Counters, out: &mut dyn std::io::Write) -> std::io::Result<()> {
//!         self.0.iter().try_for_each(|(name, calls)| writeln!(out, "{:>12} {name}", counters.get(*calls)))
//!     }
//! }
//! ```

use std::ffi::OsString;
use std::io::{self, Write};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::sync::Arc;

use lancet_engine::image::Image;
use lancet_engine::load::Module;
use lancet_engine::plan::{Argument, CounterId, FuncPlan, Plan, Point};
use lancet_engine::program::graph::Edge as GraphEdge;
use lancet_engine::program::{BlockId, Call, EdgeId, Func, FuncId, LoopId, Program};
use lancet_isa::runtime::VARIABLE;
use lancet_isa::{Insn, Reg, Syntax};

use crate::rewrite::Editor;
use crate::tools::count::CountsFile;
use crate::{Error, dsp, names};

pub trait Tool {
    /// Plans what to add to a function. Called for every function that can be edited, by address.
    fn instrument(&mut self, site: &mut Site<'_>);

    /// Routines that [`Site::call`] can name: see [`Plan::set_payload`].
    fn payload(&self) -> Option<Arc<Module>> {
        None
    }

    /// Says what the counters came to.
    fn report(&self, counters: &Counters, out: &mut dyn Write) -> io::Result<()>;
}

/// A function, and the plan for it.
pub struct Site<'a> {
    pub program: &'a Program,
    pub func: &'a Func,
    plan: &'a mut FuncPlan,
    whole: &'a mut Plan,
}

impl<'a> Site<'a> {
    pub fn name(&self) -> String {
        names::of_function(self.program, self.func)
    }

    /// A new counter.
    pub fn counter(&mut self) -> CounterId {
        self.whole.counter()
    }

    /// Calls a routine of the tool's payload at a point. All registers are as before afterwards.
    pub fn call(&mut self, at: Point, routine: &str, arguments: &[Argument]) -> Result<(), Error> {
        let call = self.whole.call(routine, arguments)?;
        self.plan.call(at, call);
        Ok(())
    }

    /// The register of a name, such as `rdi` or `R0`, for [`Site::call`].
    pub fn register(&self, name: &str) -> Option<Reg> {
        let names = self.program.image().isa().facts().reg_names;
        (0..).map(Reg).zip(names).find(|(_, known)| **known == name).map(|(reg, _)| reg)
    }

    /// Counts at a point. The same counter may be used at many.
    pub fn count(&mut self, at: Point, counter: CounterId) {
        self.plan.count(at, counter);
    }

    /// Counts calls of the function.
    pub fn at_entry(&mut self, counter: CounterId) {
        self.count(Point::Entry(0), counter);
    }

    /// Counts runs of a block.
    pub fn at_block(&mut self, block: BlockId, counter: CounterId) {
        self.count(Point::Block(block), counter);
    }

    pub fn at_edges(&mut self, edges: &[EdgeId], counter: CounterId) {
        edges.iter().for_each(|edge| self.count(Point::Edge(*edge), counter));
    }

    /// The edges that enter a loop from outside of it.
    pub fn entry_edges(&self, id: LoopId) -> Vec<EdgeId> {
        let graph = self.func.graph();
        self.ids(self.func.loops.entry_edges(&graph, id))
    }

    /// The edges that go round a loop once more.
    pub fn back_edges(&self, id: LoopId) -> Vec<EdgeId> {
        let graph = self.func.graph();
        self.ids(self.func.loops.back_edges(&graph, id))
    }

    fn ids(&self, edges: impl Iterator<Item = GraphEdge>) -> Vec<EdgeId> {
        let pairs: Vec<(u32, u32)> = edges.map(|edge| (edge.from, edge.to)).collect();
        let all = (0..).map(EdgeId).zip(&self.func.edges);
        all.filter(|(_, edge)| pairs.contains(&(edge.from.0, edge.to.0))).map(|(id, _)| id).collect()
    }

    /// What a call leads to, as far as it is known.
    pub fn callee(&self, call: &Call) -> Option<String> {
        names::of_target(self.program, call.to)
    }

    /// The instructions of a block.
    pub fn insns(&self, block: BlockId) -> Vec<Insn> {
        self.program.insns(self.func.block(block))
    }

    /// The text of an instruction.
    pub fn text(&self, insn: &Insn) -> String {
        let image = self.program.image();
        let code = image.bytes(insn.at, u64::from(insn.len)).unwrap_or_default();
        image.isa().text(code, insn.at, Syntax::Gnu, &|_| None).unwrap_or_default()
    }
}

/// What was counted, summed up over processes and threads.
#[derive(Clone, Debug, Default)]
pub struct Counters {
    values: Vec<u64>,
    left_alone: Vec<(String, String)>,
}

impl Counters {
    pub fn get(&self, counter: CounterId) -> u64 {
        self.values.get(counter.0 as usize).copied().unwrap_or(0)
    }

    /// Functions that were planned for and left alone all the same, each with the reason. Their counters say nothing.
    pub fn left_alone(&self) -> &[(String, String)] {
        &self.left_alone
    }
}

/// Lets a tool plan for all functions of a program that is edited in place; see [`dsp::edit_plan`].
pub fn plan_in_place(tool: &mut dyn Tool, program: &Program) -> Plan {
    let all = (0..program.funcs().len() as u32).map(FuncId);
    plan_for(tool, program, all, &|_| &[]).0
}

/// Lets a tool plan for all functions that can be edited.
pub fn plan(tool: &mut dyn Tool, editor: &Editor) -> Plan {
    // Edges that arrive together cannot be counted one by one: such a function is left alone.
    plan_for(tool, &editor.program, editor.survey.edited(), &|id| editor.survey.joined(id)).0
}

fn plan_for<'j>(
    tool: &mut dyn Tool,
    program: &Program,
    funcs: impl Iterator<Item = FuncId>,
    joined: &dyn Fn(FuncId) -> &'j [EdgeId],
) -> (Plan, Vec<FuncId>) {
    let mut plan = Plan::new();
    if let Some(payload) = tool.payload() {
        plan.set_payload(payload);
    }
    let mut planned: Vec<(FuncId, FuncPlan)> = Vec::new();
    let mut left_alone = Vec::new();
    for id in funcs {
        let mut of_func = FuncPlan::default();
        let func = program.func(id);
        tool.instrument(&mut Site { program, func, plan: &mut of_func, whole: &mut plan });
        let joined = joined(id);
        let asks_for_joined = of_func.insertions.iter().any(|insertion| match insertion.at {
            Point::Edge(edge) => joined.binary_search(&edge).is_ok(),
            _ => false,
        });
        if asks_for_joined {
            left_alone.push(id);
        } else {
            planned.push((id, of_func));
        }
    }
    for (id, of_func) in planned {
        *plan.edit(id) = of_func;
    }
    (plan, left_alone)
}

/// Edits a program as the tool says, and runs it with the user's own input, output and environment; on the simulator if
/// it is a Blackfin program.
pub fn run(tool: &mut dyn Tool, program: &Path, args: &[OsString]) -> Result<(ExitStatus, Counters), Error> {
    let analysed = Program::analyse(Arc::new(Image::open(program)?));
    if analysed.image().isa().facts().edited_in_place {
        return run_in_place(tool, &analysed, program, args);
    }
    let editor = Editor::new(analysed, &|_, _| true)?;
    let (plan, joined) = plan_for(tool, &editor.program, editor.survey.edited(), &|id| editor.survey.joined(id));
    let failed = |path: &Path| {
        let path = path.display().to_string();
        move |cause| Error::File { path, cause }
    };
    let folder = tempfile::tempdir().map_err(failed(&std::env::temp_dir()))?;
    let edited = folder.path().join("edited");
    let counts = folder.path().join("counts");
    editor.write_plan(&edited, &plan)?;
    let status = Command::new(&edited).args(args).env(VARIABLE, &counts).status().map_err(failed(program))?;
    let values = CountsFile::read(&counts)?.counters;
    let joined =
        joined.into_iter().map(|id| (id, "edges of it arrive together through a shared jump table".to_owned()));
    Ok((status, Counters { values, left_alone: named(&editor.program, joined) }))
}

fn run_in_place(
    tool: &mut dyn Tool,
    program: &Program,
    name: &Path,
    args: &[OsString],
) -> Result<(ExitStatus, Counters), Error> {
    let plan = plan_in_place(tool, program);
    let args = args.iter().map(|arg| arg.clone().into_vec()).collect();
    let (ran, values, left_alone) = dsp::run_plan(program, name, &plan, args)?;
    let counters = Counters { values, left_alone: named(program, left_alone.into_iter()) };
    Ok((ExitStatus::from_raw((ran.status & 0xFF) << 8), counters))
}

fn named(program: &Program, funcs: impl Iterator<Item = (FuncId, String)>) -> Vec<(String, String)> {
    funcs.map(|(id, why)| (names::of_function(program, program.func(id)), why)).collect()
}
