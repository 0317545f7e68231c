//! The causes of exceptions and hardware errors, as SEQSTAT shows them.
//!
//! (Blackfin Processor Programming Reference, "Events That Cause Exceptions" and "Hardware Conditions Causing Hardware
//! Error Interrupts".)

/// EXCAUSE: the low 6 bits of SEQSTAT. Below 0x20 the instruction has completed and RETX points behind it; from there on
/// it was cancelled and RETX points at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Cause {
    SingleStep = 0x10,
    TraceBufferFull = 0x11,
    Undefined = 0x21,
    IllegalCombination = 0x22,
    DataProtection = 0x23,
    DataMisaligned = 0x24,
    DoubleFault = 0x25,
    DataMiss = 0x26,
    DataMultipleHits = 0x27,
    FetchMisaligned = 0x2A,
    FetchProtection = 0x2B,
    FetchMiss = 0x2C,
    FetchMultipleHits = 0x2D,
    SupervisorOnly = 0x2E,
}

impl Cause {
    /// In words.
    pub fn text(self) -> &'static str {
        match self {
            Cause::SingleStep => "single step",
            Cause::TraceBufferFull => "trace buffer full",
            Cause::Undefined => "undefined instruction",
            Cause::IllegalCombination => "illegal combination of instructions",
            Cause::DataProtection => "data access protection violation",
            Cause::DataMisaligned => "misaligned data access",
            Cause::DoubleFault => "exception within an exception handler",
            Cause::DataMiss => "data access outside memory",
            Cause::DataMultipleHits => "more than one protection entry for a data access",
            Cause::FetchMisaligned => "misaligned instruction address",
            Cause::FetchProtection => "instruction fetch protection violation",
            Cause::FetchMiss => "instruction fetch outside memory",
            Cause::FetchMultipleHits => "more than one protection entry for an instruction fetch",
            Cause::SupervisorOnly => "use of a supervisor resource",
        }
    }
}

/// What an EXCAUSE means, in words.
pub fn text_of(cause: u8) -> &'static str {
    use Cause::*;
    const ALL: [Cause; 14] = [
        SingleStep,
        TraceBufferFull,
        Undefined,
        IllegalCombination,
        DataProtection,
        DataMisaligned,
        DoubleFault,
        DataMiss,
        DataMultipleHits,
        FetchMisaligned,
        FetchProtection,
        FetchMiss,
        FetchMultipleHits,
        SupervisorOnly,
    ];
    ALL.into_iter().find(|known| *known as u8 == cause).map_or("a software exception", Cause::text)
}

/// HWERRCAUSE: bits 14 to 18 of SEQSTAT. The causes that the simulated machine has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum HardwareError {
    ExternalAddress = 0x03,
    Raised = 0x18,
}

/// Why an instruction did not complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The fast path cannot do this; nothing has changed.
    Slow,
    Exception(Cause),
}
