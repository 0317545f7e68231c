//! What ELF defines for each machine: names, and the numbers of dynamic relocations.
//!
//! Numbers from each architecture's processor supplement of the System V ABI. No table for a machine means that its
//! relocations are known by their number alone.

/// What a dynamic relocation asks the loader to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DynamicReloc {
    /// Where the image was loaded, plus the addend.
    Relative,
    /// What the function at load address plus addend returns.
    Irelative,
    /// A symbol's address, plus the addend.
    Symbol,
    /// The initial contents of another object's variable.
    Copy,
    /// A thread-local variable's module, or its offset.
    Tls,
}

struct Machine {
    number: u16,
    name: &'static str,
    relocs: &'static [(u32, DynamicReloc)],
}

const fn named(number: u16, name: &'static str) -> Machine {
    Machine { number, name, relocs: &[] }
}

const MACHINES: &[Machine] = &[
    named(2, "SPARC"),
    named(3, "Intel 80386"),
    named(8, "MIPS"),
    named(18, "SPARC v8+"),
    named(20, "PowerPC"),
    named(21, "PowerPC64"),
    named(22, "S/390"),
    named(40, "Arm"),
    named(42, "SuperH"),
    named(43, "SPARC v9"),
    Machine {
        number: 62,
        name: "x86-64",
        relocs: &[
            (1, DynamicReloc::Symbol), // R_X86_64_64
            (5, DynamicReloc::Copy),
            (6, DynamicReloc::Symbol), // GLOB_DAT
            (7, DynamicReloc::Symbol), // JUMP_SLOT
            (8, DynamicReloc::Relative),
            (16, DynamicReloc::Tls), // DTPMOD64
            (17, DynamicReloc::Tls), // DTPOFF64
            (18, DynamicReloc::Tls), // TPOFF64
            (36, DynamicReloc::Tls), // TLSDESC
            (37, DynamicReloc::Irelative),
            (38, DynamicReloc::Relative), // RELATIVE64
        ],
    },
    named(106, "Blackfin"),
    named(164, "Hexagon"),
    named(183, "AArch64"),
    named(243, "RISC-V"),
    named(247, "BPF"),
    named(258, "LoongArch"),
];

fn machine(number: u16) -> Option<&'static Machine> {
    MACHINES.iter().find(|machine| machine.number == number)
}

/// The name of an ELF machine number (`EM_*`), for people.
pub fn elf_machine_name(number: u16) -> Option<&'static str> {
    machine(number).map(|machine| machine.name)
}

/// What the relocation numbers of an ELF machine ask for.
pub fn elf_dynamic_relocs(number: u16) -> &'static [(u32, DynamicReloc)] {
    machine(number).map_or(&[], |machine| machine.relocs)
}
