# A caller that knows what it calls: it keeps a value in a register that calls may change, because this one does not.
# Compilers do that among functions of one file.
    .text

    .type twice, @function
twice:
    .cfi_startproc
    lea (%rdi,%rdi), %rax
    jmp 1f
    nop
1:  ret
    .cfi_endproc
    .size twice, .-twice

# long held(long a, long b): 2 a + b, with b in r11 meanwhile.
    .globl held
    .type held, @function
held:
    .cfi_startproc
    mov %rsi, %r11
    call twice
    add %r11, %rax
    ret
    .cfi_endproc
    .size held, .-held

    .section .note.GNU-stack, "", @progbits
