//! The run-time code has the same length wherever it stands.

use lancet_isa::Svma;
use lancet_isa::runtime::{RunTimePlaces, Shard, StartUp, ThreadPlace};

#[test]
fn its_length_does_not_depend_on_its_place() {
    let edit = lancet_isa::for_elf_machine(62).and_then(|isa| isa.editor()).expect("x86-64 can be edited");
    for start_up in [
        StartUp::Program { old: Svma(0x1000) },
        StartUp::Library { old: Some(Svma(0x1000)) },
        StartUp::Library { old: None },
    ] {
        let made = |at: u64, data: u64, threads: bool| {
            let (header, path, state) = (Svma(data), Svma(data + 0x1000), Svma(data + 0x1800));
            let shard = match threads {
                true => Shard::PerThread(ThreadPlace { at: data as u32 & 0xff_f000, index: at as u32 % 7 }),
                false => Shard::At(Svma(data + 0x2000)),
            };
            let places = RunTimePlaces {
                at: Svma(at),
                header,
                path,
                state,
                shard,
                shard_len: 1 << 16,
                start_up,
                cuts: Some(64),
            };
            edit.run_time(&places).expect("it can be encoded")
        };
        for threads in [false, true] {
            let (near, far) = (made(0x5000, 0x10_5000, threads), made(0x4000_0000, 0x6123_4000, threads));
            assert_eq!(near.bytes.len(), far.bytes.len());
            assert_eq!(near.forked - near.start_up, far.forked - far.start_up);
        }
    }
}
