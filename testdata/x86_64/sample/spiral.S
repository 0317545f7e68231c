/* An irreducible loop: control enters it at 1 and at 2. And a function whose jump nobody can follow. */
        .text
        .globl  spiral
        .type   spiral, @function
spiral:
        .cfi_startproc
        xorl    %eax, %eax
        testq   $1, %rdi
        jne     2f
1:      addq    $3, %rax
        decq    %rdi
2:      addq    %rdi, %rax
        subq    $2, %rdi
        jg      1b
        ret
        .cfi_endproc
        .size   spiral, .-spiral

        .globl  leap
        .type   leap, @function
leap:
        .cfi_startproc
        pushq   %rbx
        .cfi_adjust_cfa_offset 8
        leaq    (%rdi,%rsi,8), %rbx
        movq    (%rbx), %rax
        xorq    %rdx, %rax
        jmp     *%rax
        .cfi_endproc
        .size   leap, .-leap
        .section .note.GNU-stack, "", @progbits
