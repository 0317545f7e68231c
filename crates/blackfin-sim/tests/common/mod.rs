//! What the tests share.

#![allow(dead_code, reason = "every test uses some of it")]

use lancet_blackfin_sim::{Captured, Config, End, Environment, Simulator};
use lancet_isa::blackfin::{AllReg, Assembler, BfInsn, Op, encode, encode_insn};
use std::path::{Path, PathBuf};

pub fn testdata() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/blackfin")
}

/// Runs a program to its end; returns how it ended and what it printed.
pub fn run(program: &Path, operating: bool) -> (End, String) {
    let file = std::fs::read(program).unwrap();
    let environment = if operating { Environment::Operating } else { Environment::Virtual };
    let mut host = Captured::default();
    let mut simulator = Simulator::load(&file, Config { environment, ..Config::default() }).unwrap();
    match simulator.run(&mut host) {
        Ok(end) => (end, host.text()),
        Err(error) => panic!("{}: {error}\n{}", program.display(), host.text()),
    }
}

/// Where programs made by [`machine`] start.
pub const START: u32 = 0x1000;

/// Writes a program.
#[derive(Default)]
pub struct Program {
    code: Vec<u8>,
}

impl Program {
    /// Where the next instruction goes.
    pub fn here(&self) -> u32 {
        START + self.code.len() as u32
    }

    pub fn op(&mut self, op: Op) -> &mut Program {
        self.code.extend_from_slice(&encode(&op, self.here()).unwrap());
        self
    }

    pub fn bundle(&mut self, op: Op, slots: [Op; 2]) -> &mut Program {
        let insn = BfInsn { at: self.here(), len: 8, op, slots: Some(slots) };
        self.code.extend_from_slice(&encode_insn(&insn).unwrap());
        self
    }

    pub fn word(&mut self, word: u16) -> &mut Program {
        self.code.extend_from_slice(&word.to_le_bytes());
        self
    }

    pub fn load(&mut self, reg: AllReg, value: u32) -> &mut Program {
        let mut assembler = Assembler::new(self.here());
        assembler.load(reg, value).unwrap();
        self.code.extend(assembler.finish());
        self
    }
}

/// A machine with the program that `write` makes, ended by `HLT`.
pub fn machine(config: Config, write: impl FnOnce(&mut Program)) -> Simulator {
    let mut program = Program::default();
    write(&mut program);
    program.op(Op::Hlt);
    let mut simulator = Simulator::bare(config).unwrap();
    simulator.write_memory(START, &program.code).unwrap();
    simulator.registers_mut().pc = START;
    simulator
}
