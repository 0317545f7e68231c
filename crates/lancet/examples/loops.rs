//! Lists the loops of a program with their depth, and the registers that are free where each begins.
//!
//! `cargo run -p lancet --example loops -- /usr/bin/bash`

use std::path::Path;
use std::sync::Arc;

use lancet::prelude::*;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args_os().nth(1).ok_or("usage: loops FILE")?;
    let program = Program::analyse(Arc::new(Image::open(Path::new(&path))?));
    let facts = program.image().isa().facts();
    for func in program.funcs().iter().filter(|func| func.is_complete()) {
        for (id, l) in func.loops.iter() {
            let header = BlockId(l.header);
            let free = facts.general.without(func.live_in(header));
            let free: Vec<&str> = free.iter().map(|reg| facts.reg_name(reg)).collect();
            println!(
                "{} {:indent$}{}: depth {}, {} blocks, free: {}",
                names::of_function(&program, func),
                "",
                func.block(header).start,
                l.depth,
                func.loops.blocks(id).len(),
                free.join(" "),
                indent = 2 * l.depth as usize,
            );
        }
    }
    Ok(())
}
