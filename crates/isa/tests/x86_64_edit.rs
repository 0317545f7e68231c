//! What is added to programs, as text.

use lancet_isa::edit::{Counter, Edit, FieldKind, Free, OWN_PREFIX};
use lancet_isa::{Isa, Reg, RegSet, Svma, Syntax};

const R8: Reg = Reg(8);
const R9: Reg = Reg(9);
const RBP: Reg = Reg(5);
const R12: Reg = Reg(12);
const R13: Reg = Reg(13);

fn x86_64() -> (&'static dyn Isa, &'static dyn Edit) {
    let isa = lancet_isa::for_elf_machine(62).unwrap();
    (isa, isa.editor().unwrap())
}

fn text(write: impl FnOnce(&dyn Edit, &mut Vec<u8>)) -> Vec<String> {
    let (isa, edit) = x86_64();
    let mut code = Vec::new();
    write(edit, &mut code);
    let mut lines = Vec::new();
    isa.listing(&code, Svma(0), Syntax::Gnu, &|_| None, &mut |line| {
        lines.push(line.text.split_whitespace().collect::<Vec<_>>().join(" "));
    });
    lines
}

/// With the counter at 0x1000.
fn add(counter: Counter, reg: Reg, since: Option<Reg>, regs: RegSet) -> Vec<String> {
    text(|edit, out| {
        let mut fields = Vec::new();
        edit.add(counter, reg, since, Free { regs }, out, &mut fields);
        for field in fields {
            assert!(field.kind != FieldKind::Own || out[(field.offset - OWN_PREFIX) as usize] == 0x65);
            edit.fill(out, Svma(0), field, Svma(0x1000)).unwrap();
        }
    })
}

#[test]
fn registers_are_set_and_counted_in() {
    assert_eq!(text(|edit, out| edit.set(R8, None, out)), ["mov $0, %r8d"]);
    assert_eq!(text(|edit, out| edit.set(RBP, Some(R13), out)), ["mov %r13, %rbp"]);
    assert_eq!(text(|edit, out| edit.set(R12, Some(RBP), out)), ["mov %rbp, %r12"]);
    for (reg, name) in [(Reg(0), "%rax"), (RBP, "%rbp"), (R8, "%r8"), (R12, "%r12"), (R13, "%r13")] {
        assert_eq!(text(|edit, out| edit.count_in(reg, out)), [format!("lea 1({name}), {name}")]);
    }
}

#[test]
fn registers_are_added_to_counters() {
    let thread = Counter::PerThread(0);
    assert_eq!(add(thread, R8, None, RegSet::ALL), ["add %r8, %gs:0x1000"]);
    let grown = add(thread, RBP, Some(R12), RegSet::ALL);
    assert_eq!(grown, ["not %r12", "lea 1(%r12,%rbp), %r12", "add %r12, %gs:0x1000"]);
    let grown = add(thread, R12, Some(R13), RegSet::ALL);
    assert_eq!(grown, ["not %r13", "lea 1(%r13,%r12), %r13", "add %r13, %gs:0x1000"]);
    let at_once = add(Counter::Contended, R9, None, RegSet::ALL);
    assert!(matches!(&at_once[..], [one] if one.starts_with("lock add %r9, ")), "{at_once:?}");
}

/// With the flags in use, the counter goes through a register that is neither in use nor the one to add.
#[test]
fn flags_are_left_alone() {
    let dead = RegSet::of(R8) | RegSet::of(R9);
    let through_dead = ["mov %gs:0x1000, %r9", "lea (%r9,%r8), %r9", "mov %r9, %gs:0x1000"];
    assert_eq!(add(Counter::PerThread(0), R8, None, dead), through_dead);
    let through_saved = add(Counter::PerThread(0), Reg(0), None, RegSet::EMPTY);
    assert_eq!(
        through_saved[1..5],
        ["push %rcx", "mov %gs:0x1000, %rcx", "lea (%rcx,%rax), %rcx", "mov %rcx, %gs:0x1000"]
    );
    let saved = add(Counter::Contended, R9, None, RegSet::EMPTY);
    assert_eq!((saved[1].as_str(), saved[3].as_str(), saved.len()), ("pushf", "popf", 5));
}

#[test]
fn indirect_calls_as_jumps() {
    let (_, edit) = x86_64();
    let cases: [(&[u8], &[u8]); 6] = [
        (&[0xff, 0xd0], &[0xff, 0xe0]),                                     // call rax
        (&[0x41, 0xff, 0xd3], &[0x41, 0xff, 0xe3]),                         // call r11
        (&[0xff, 0x15, 1, 2, 3, 4], &[0xff, 0x25, 1, 2, 3, 4]),             // call [rip + ...]
        (&[0xff, 0x14, 0x24], &[0xff, 0xa4, 0x24, 8, 0, 0, 0]),             // call [rsp], which has moved
        (&[0xff, 0x54, 0x24, 0xf8], &[0xff, 0xa4, 0x24, 0, 0, 0, 0]),       // call [rsp - 8]
        (&[0x41, 0xff, 0x54, 0x24, 0x18], &[0x41, 0xff, 0x64, 0x24, 0x18]), // call [r12 + 24]
    ];
    for (call, jump) in cases {
        let mut out = Vec::new();
        assert!(edit.jump_as_call(call, &mut out));
        assert_eq!(out, jump, "{call:x?}");
    }
    assert!(!edit.jump_as_call(&[0xe8, 0, 0, 0, 0], &mut Vec::new()));
    assert!(!edit.jump_as_call(&[0xff, 0xe0], &mut Vec::new()));
}
