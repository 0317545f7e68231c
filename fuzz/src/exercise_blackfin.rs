//! What is done with a fuzzed Blackfin program: the fuzz targets and the test that replays old findings share it.
//!
//! Nothing may panic. What the decoder reads, the encoder writes back. The simulator's two ways to run a program, whole
//! blocks and single instructions, must agree about everything that can be seen.

use std::cell::Cell;
use std::hint::black_box;

use lancet_blackfin_sim::{Captured, Config, Environment, SimError, Simulator, State, Step, TimingConfig};
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
/// Behind the program, and where unset vectors lead, so that it does not run through empty memory up to the limit.
const ILLEGAL: [u8; 4] = [0xFF; 4];

/// What can be seen of a run, beside memory. Cycles are not compared: a single instruction knows nothing of the one before,
/// for which it may have to wait, and a block's lines are fetched at once, also those that an exception keeps it from. So
/// nothing is compared either if the program could look at the time.
#[derive(Debug, PartialEq)]
struct Seen {
    end: String,
    registers: State,
    instructions: u64,
    output: Vec<u8>,
}

thread_local! {
    /// The two machines, which are used again: to make one takes longer than to run a program this short.
    static MACHINES: Cell<[Option<Simulator>; 2]> = const { Cell::new([None, None]) };
}

/// Runs the bytes as a program, twice.
#[allow(dead_code)]
pub fn simulator(bytes: &[u8]) {
    let [mode, rest @ .., _] = bytes else { return };
    let [first, second] = MACHINES.take();
    let (mut first, mut second) = (machine(*mode, first), machine(*mode, second));
    let blocks = run(&mut first, rest, None);
    let mut sees_time = false;
    let single = run(&mut second, rest, Some(&mut sees_time));
    if !sees_time {
        assert_eq!(blocks, single, "blocks and single instructions disagree");
        for (at, len) in MEMORIES {
            let [blocks, single] = [&first, &second].map(|machine| machine.memory(at, len).expect("there is memory"));
            // Nobody reads that much.
            assert!(blocks == single, "blocks and single instructions disagree about memory from {at:#x} on");
        }
    }
    MACHINES.set([Some(first), Some(second)]);
}

/// Memory that programs find: SDRAM, L2, both banks of data and the scratchpad on the chip.
const MEMORIES: [(u32, usize); 5] =
    [(0, SDRAM as usize), (0xFEB0_0000, 0x2_0000), (0xFF80_0000, 0x8000), (0xFF90_0000, 0x8000), (0xFFB0_0000, 0x1000)];

fn machine(mode: u8, used: Option<Simulator>) -> Simulator {
    let config = Config {
        environment: if mode & 1 == 0 { Environment::Virtual } else { Environment::Operating },
        timing: (mode & 2 != 0).then(TimingConfig::default),
        sdram: SDRAM,
        args: Vec::new(),
        limit: LIMIT,
    };
    match used {
        Some(used) => used.reset(config),
        None => Simulator::bare(config),
    }
    .expect("that much memory is possible")
}

/// Does CYCLES count, or is a pointer where the timer and the performance counters are?
fn may_see_time(state: &State) -> bool {
    const COUNTS_CYCLES: u32 = 2;
    const REGISTERS: u32 = 0xFFC0_0000;
    state.syscfg & COUNTS_CYCLES != 0
        || state.r.iter().any(|value| *value >= REGISTERS && *value < REGISTERS + 0x30_0000)
}

/// Runs a program, in single instructions if it is to be watched for looking at the time.
fn run(simulator: &mut Simulator, bytes: &[u8], sees_time: Option<&mut bool>) -> Seen {
    let (registers, code) = bytes.split_at(bytes.len().min(32));
    let code = &code[..code.len().min(0x1000)];
    for (at, bytes) in [(0, &ILLEGAL[..]), (START, code), (START + code.len() as u32, &ILLEGAL[..])] {
        simulator.write_memory(at, bytes).expect("there is memory");
    }
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
    let end = match sees_time {
        Some(sees_time) => simulator.run_traced(&mut host, &mut |step: &Step<'_>| {
            black_box(step.changes());
            *sees_time |= may_see_time(step.before);
        }),
        None => simulator.run(&mut host),
    };
    let end = match end {
        Ok(end) => format!("{end:?}"),
        Err(error @ SimError::Stopped(_)) => error.to_string(),
        Err(error) => panic!("a program that was loaded cannot fail to load: {error}"),
    };
    let instructions = simulator.stats().instructions;
    Seen { end, registers: simulator.registers().clone(), instructions, output: host.output }
}
