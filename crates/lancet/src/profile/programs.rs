//! Which function an address is in.

use std::collections::BTreeMap;
use std::sync::Arc;

use lancet_engine::collect::{KernelSymbols, ObjectId, Place, Recording};
use lancet_engine::image::{Image, SymbolKind, demangle};
use lancet_engine::program::{FuncId, Program};
use lancet_isa::Svma;

use crate::{Object, names};

/// What an address belongs to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Home {
    /// A function of an object that was analysed.
    Function(ObjectId, FuncId),
    /// A function of another object, by where it starts.
    Start(ObjectId, Svma),
    /// Somewhere in an object.
    Object(ObjectId),
    Kernel(u64),
    Unknown,
}

/// An object with fewer samples than one in so many is not analysed; its functions still have names.
const WORTH_ANALYSING: u64 = 200;

/// The objects of a recording, as far as they are known.
#[derive(Default)]
pub struct Programs {
    objects: Vec<Known>,
    kernel: Option<KernelSymbols>,
}

struct Known {
    path: String,
    image: Option<Arc<Image>>,
    analysed: Option<Arc<Object>>,
}

impl Programs {
    /// Analyses what has enough samples and was not analysed yet.
    pub fn analyse(&mut self, recording: &Recording) {
        for object in &recording.objects[self.objects.len()..] {
            let path = object.path.display().to_string();
            self.objects.push(Known { path, image: object.image.clone(), analysed: None });
        }
        let mut samples: BTreeMap<u32, u64> = BTreeMap::new();
        for sample in &recording.samples {
            let innermost = recording.frame(recording.stack(sample.stack).frame).place;
            if let Place::Object(object, _) = innermost {
                *samples.entry(object.0).or_default() += 1;
            }
        }
        for (object, count) in samples {
            let known = &mut self.objects[object as usize];
            let is_worth_it = count * WORTH_ANALYSING >= recording.samples.len() as u64;
            if let (Some(image), None, true) = (&known.image, &known.analysed, is_worth_it) {
                let program = Program::analyse(Arc::clone(image));
                known.analysed = Some(Arc::new(Object { program, bias: 0 }));
            }
        }
        let needs_kernel = recording.frames.iter().any(|frame| matches!(frame.place, Place::Kernel(_)));
        if needs_kernel && self.kernel.is_none() {
            self.kernel = Some(KernelSymbols::read());
        }
    }

    pub fn home(&self, place: Place) -> Home {
        match place {
            Place::Kernel(at) => Home::Kernel(self.kernel.as_ref().and_then(|kernel| kernel.start(at)).unwrap_or(0)),
            Place::Unknown(_) => Home::Unknown,
            Place::Object(id, at) => {
                let known = &self.objects[id.0 as usize];
                if let Some(func) = known.analysed.as_ref().and_then(|object| object.program.func_at(at)) {
                    return Home::Function(id, func);
                }
                let start = known.image.as_ref().and_then(|image| start_of(image, at));
                start.map_or(Home::Object(id), |start| Home::Start(id, start))
            }
        }
    }

    /// What people call it.
    pub fn name(&self, home: &Home, place: Place) -> String {
        match home {
            Home::Kernel(_) => {
                let Place::Kernel(at) = place else { return "[kernel]".into() };
                let name = self.kernel.as_ref().and_then(|kernel| kernel.name(at));
                name.map_or("[kernel]".into(), str::to_owned)
            }
            Home::Unknown => "[unknown]".into(),
            Home::Object(_) => format!("[{}]", self.file_name(home)),
            Home::Start(id, start) => {
                let image = self.objects[id.0 as usize].image.as_ref();
                let name = image.and_then(|image| image.name_at(*start));
                name.map_or_else(|| names::unnamed(*start), |name| demangle(name).into_owned())
            }
            Home::Function(..) => match self.function(home) {
                Some((object, func)) => names::of_function(&object.program, object.program.func(func)),
                None => String::new(),
            },
        }
    }

    /// The object that it is in; `[kernel]` for the kernel.
    pub fn object_name(&self, home: &Home) -> &str {
        match home {
            Home::Function(id, _) | Home::Start(id, _) | Home::Object(id) => &self.objects[id.0 as usize].path,
            Home::Kernel(_) => "[kernel]",
            Home::Unknown => "[unknown]",
        }
    }

    /// The last part of [`object_name`](Self::object_name).
    pub fn file_name(&self, home: &Home) -> &str {
        let path = self.object_name(home);
        path.rsplit('/').next().unwrap_or(path)
    }

    /// The function, if its object was analysed.
    pub fn function(&self, home: &Home) -> Option<(&Arc<Object>, FuncId)> {
        let Home::Function(id, func) = home else { return None };
        self.objects[id.0 as usize].analysed.as_ref().map(|object| (object, *func))
    }

    /// Where the function starts, as stated in its file.
    pub fn start(&self, home: &Home) -> Option<Svma> {
        match home {
            Home::Start(_, start) => Some(*start),
            Home::Function(..) => self.function(home).map(|(object, func)| object.program.func(func).entry),
            _ => None,
        }
    }
}

/// Without analysis: the unwind table says where functions start, else the symbol before the address does.
fn start_of(image: &Image, at: Svma) -> Option<Svma> {
    if let Some(fde) = image.fde_at(at) {
        return Some(fde.start);
    }
    let symbols = image.symbols();
    let before = &symbols[..symbols.partition_point(|symbol| symbol.svma <= at)];
    let is_function = |kind: SymbolKind| matches!(kind, SymbolKind::Function | SymbolKind::IFunc);
    let nearest = before.iter().rev().take(64).find(|symbol| is_function(symbol.kind))?;
    (at - nearest.svma < nearest.size.max(1)).then_some(nearest.svma)
}
