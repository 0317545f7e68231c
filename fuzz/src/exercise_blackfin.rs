//! What is done with a fuzzed Blackfin program: the fuzz targets and the test that replays old findings share it.
//!
//! Nothing may panic. What the decoder reads, the encoder writes back. The simulator's two ways to run a program, whole
//! blocks and single instructions, must agree about everything that can be seen.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::hint::black_box;

use lancet_blackfin_sim::{Captured, Config, Environment, SimError, Simulator, TimingConfig};
use lancet_isa::blackfin::{Disassembler, decode, encode_insn};
use lancet_isa::{Svma, Syntax, for_elf_machine};

const BLACKFIN: u16 = 106;

/// Decodes the bytes, writes them as text, and encodes them again.
#[allow(dead_code)] // each target uses one of the two
pub fn decoder(bytes: &[u8]) {
    let Some(isa) = for_elf_machine(BLACKFIN) else { return };
    let mut shown = 0;
    isa.listing(bytes, Svma(0x1000), Syntax::Gnu, &|_| None, &mut |line| {
        assert!(!line.text.is_empty());
        shown += line.code.len();
    });
    assert_eq!(shown, bytes.len(), "a listing shows every byte once");
    let (mut rest, mut at) = (bytes, 0x1000u32);
    while let Ok(insn) = decode(rest, at) {
        if let Ok(encoded) = encode_insn(&insn) {
            assert_eq!(decode(&encoded, at), Ok(insn), "the encoder changed an instruction");
        }
        black_box(Disassembler::new().line(rest, at, &|_| None)).expect("what is decoded has a text");
        rest = &rest[usize::from(insn.len)..];
        at = insn.end();
    }
    let (mut values, mut offset) = (0, 0);
    while let Ok(insn) = lancet_isa::decode_one(isa, &bytes[offset..], Svma(offset as u64)) {
        let code = &bytes[offset..];
        values +=
            usize::from(isa.jump_target(code, insn.at).is_some()) + usize::from(isa.guard(code, insn.at).is_some());
        black_box(isa.values(code, insn.at));
        offset += usize::from(insn.len);
    }
    black_box(values);
}

/// A run is cut off here: the fuzzer writes endless loops.
const LIMIT: u64 = 500;
const START: u32 = 0x1000;
const SDRAM: u32 = 0x4000;

/// What can be seen of a run. Cycles are not compared: a single instruction knows nothing of the one before, for which it
/// may have to wait, and a block's lines are fetched at once, also those that an exception keeps it from.
#[derive(Debug, PartialEq)]
struct Seen {
    end: String,
    registers: lancet_blackfin_sim::State,
    instructions: u64,
    output: Vec<u8>,
    /// Its hash, because nobody reads 16 KB.
    memory: u64,
}

/// Runs the bytes as a program, twice.
#[allow(dead_code)]
pub fn simulator(bytes: &[u8]) {
    let [mode, registers @ .., _] = bytes else { return };
    let blocks = run(*mode, registers, false);
    let single = run(*mode, registers, true);
    assert_eq!(blocks, single, "blocks and single instructions disagree");
}

fn run(mode: u8, bytes: &[u8], traced: bool) -> Option<Seen> {
    let config = Config {
        environment: if mode & 1 == 0 { Environment::Virtual } else { Environment::Operating },
        timing: (mode & 2 != 0).then(TimingConfig::default),
        sdram: SDRAM,
        args: Vec::new(),
        limit: LIMIT,
    };
    let mut simulator = Simulator::bare(config).ok()?;
    let (registers, code) = bytes.split_at(bytes.len().min(32));
    let code = &code[..code.len().min(0x1000)];
    simulator.write_memory(START, code)?;
    let state = simulator.registers_mut();
    for (register, byte) in state.r.iter_mut().zip(registers) {
        // Interesting values: addresses in SDRAM and L1, small and large numbers.
        *register = match byte >> 6 {
            0 => START + 4 * u32::from(byte & 63),
            1 => 0xFF80_0000 | u32::from(byte & 63) << 2,
            2 => u32::from(byte & 63),
            _ => u32::from(*byte).wrapping_mul(0x0801_0021),
        };
    }
    state.pc = START;
    let mut host = Captured::default();
    let end = if traced {
        simulator.run_traced(&mut host, &mut |step: &lancet_blackfin_sim::Step<'_>| {
            black_box(step.changes());
        })
    } else {
        simulator.run(&mut host)
    };
    let end = match end {
        Ok(end) => format!("{end:?}"),
        Err(error @ SimError::Stopped(_)) => error.to_string(),
        Err(error) => panic!("a program that was loaded cannot fail to load: {error}"),
    };
    let stats = simulator.stats();
    let mut memory = DefaultHasher::new();
    simulator.memory(0, SDRAM as usize)?.hash(&mut memory);
    Some(Seen {
        end,
        registers: simulator.registers().clone(),
        instructions: stats.instructions,
        output: host.output,
        memory: memory.finish(),
    })
}
