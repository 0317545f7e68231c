/* Hand-written assembly as careful people write it: with unwind information, sizes and types. */
        .file   "assembly_cfi.S"
        .text

        .macro begin name
        .globl  \name
        .type   \name, @function
        .p2align 4
\name:
        .cfi_startproc
        .endm

        .macro end name
        .cfi_endproc
        .size   \name, . - \name
        .endm

/* A loop whose test stands at the end. */
        begin   asm_gcd
        mov     %rdi, %rax
        mov     %rsi, %rcx
        jmp     2f
1:      xor     %edx, %edx
        div     %rcx
        mov     %rcx, %rax
        mov     %rdx, %rcx
2:      test    %rcx, %rcx
        jnz     1b
        ret
        end     asm_gcd

/* The first function falls through into the second. */
        begin   asm_sum_to_ten
        mov     $10, %edi
        end     asm_sum_to_ten
        .globl  asm_sum_to
        .type   asm_sum_to, @function
asm_sum_to:
        .cfi_startproc
        xor     %eax, %eax
        mov     %rdi, %rcx
1:      test    %rcx, %rcx
        jle     2f
        add     %rcx, %rax
        dec     %rcx
        jmp     1b
2:      ret
        end     asm_sum_to

/* One body, two entries: the second lies inside the first. */
        begin   asm_clamp
        cmp     $100, %rdi
        jle     asm_clamp_low
        mov     $100, %edi
        .globl  asm_clamp_low
        .type   asm_clamp_low, @function
asm_clamp_low:
        mov     %rdi, %rax
        test    %rax, %rax
        jns     1f
        xor     %eax, %eax
1:      ret
        .size   asm_clamp_low, . - asm_clamp_low
        end     asm_clamp

/* A conditional tail call. */
        begin   asm_abs_or_tail
        test    $1, %dil
        jnz     asm_gcd
        mov     %rdi, %rax
        neg     %rax
        cmovs   %rdi, %rax
        ret
        end     asm_abs_or_tail

/* A table of offsets in read-only data, checked with a signed and an unsigned compare. */
        begin   asm_dispatch
        mov     %rdi, %rax
        test    %rax, %rax
        js      .Ldispatch_other
        cmp     $5, %rax
        ja      .Ldispatch_other
        lea     .Ldispatch_table(%rip), %rdx
        movslq  (%rdx,%rax,4), %rax
        add     %rdx, %rax
        jmp     *%rax
.Ldispatch_0:
        lea     1(%rsi), %rax
        ret
.Ldispatch_1:
        lea     2(%rsi,%rsi), %rax
        ret
.Ldispatch_2:
        imul    $3, %rsi, %rax
        ret
.Ldispatch_3:
        mov     $4, %eax
        ret
.Ldispatch_other:
        mov     $-1, %rax
        ret
        end     asm_dispatch
        .section .rodata
        .p2align 2
.Ldispatch_table:
        .long   .Ldispatch_0 - .Ldispatch_table
        .long   .Ldispatch_1 - .Ldispatch_table
        .long   .Ldispatch_2 - .Ldispatch_table
        .long   .Ldispatch_1 - .Ldispatch_table
        .long   .Ldispatch_3 - .Ldispatch_table
        .long   .Ldispatch_0 - .Ldispatch_table
        .text

/* A leaf whose unlikely cases stand elsewhere, as gcc arranges them: nothing in the unwind table tells that piece from a
   function, and control comes to it through a check and a table only, mostly in its middle. */
        begin   asm_weight
        cmp     $4, %rdi
        ja      .Lweight_other
        lea     .Lweight_table(%rip), %rdx
        movslq  (%rdx,%rdi,4), %rax
        add     %rdx, %rax
        jmp     *%rax
.Lweight_0:
        lea     (%rsi,%rsi,8), %rax
        ret
.Lweight_3:
        mov     $3, %eax
        ret
        end     asm_weight
        .section .text.unlikely, "ax", @progbits
        .p2align 4
        ud2
        .type   asm_weight.cold, @function
asm_weight.cold:
        .cfi_startproc
.Lweight_1:
        lea     100(%rsi), %rax
        ret
.Lweight_2:
        mov     %rsi, %rax
        shl     $7, %rax
        ret
.Lweight_other:
        mov     $-2, %rax
        ret
        .cfi_endproc
        .size   asm_weight.cold, . - asm_weight.cold
        .section .rodata
        .p2align 2
.Lweight_table:
        .long   .Lweight_0 - .Lweight_table
        .long   .Lweight_2 - .Lweight_table
        .long   .Lweight_1 - .Lweight_table
        .long   .Lweight_3 - .Lweight_table
        .long   .Lweight_2 - .Lweight_table
        .text

/* A table of addresses that the loader relocates in a PIE. */
        begin   asm_dispatch_wide
        and     $3, %edi
        lea     .Lwide_table(%rip), %rax
        jmp     *(%rax,%rdi,8)
.Lwide_0:
        mov     %rsi, %rax
        ret
.Lwide_1:
        lea     (%rsi,%rsi,2), %rax
        ret
.Lwide_2:
        mov     $2, %eax
        ret
.Lwide_3:
        mov     %rsi, %rax
        not     %rax
        ret
        end     asm_dispatch_wide
        .section .data.rel.ro, "aw"
        .p2align 3
.Lwide_table:
        .quad   .Lwide_0, .Lwide_1, .Lwide_2, .Lwide_3
        .text

/* Two functions, one tail: the second ends by a jump into the first. */
        begin   asm_hash
        mov     $5381, %eax
        mov     $8, %ecx
1:      imul    $33, %rax, %rax
        add     %rdi, %rax
        shr     $1, %rdi
        dec     %ecx
        jnz     1b
.Lhash_tail:
        mov     %rax, %rdx
        shr     $17, %rdx
        xor     %rdx, %rax
        ret
        end     asm_hash

        begin   asm_hash_other
        mov     $0x1505, %eax
        imul    %rsi, %rax
        xor     %rdi, %rax
        jmp     .Lhash_tail
        end     asm_hash_other

/* A frame, a saved register, and a call of a local function that has no name outside. */
        begin   asm_frame
        push    %rbp
        .cfi_def_cfa_offset 16
        .cfi_offset %rbp, -16
        mov     %rsp, %rbp
        .cfi_def_cfa_register %rbp
        push    %rbx
        .cfi_offset %rbx, -24
        sub     $24, %rsp
        mov     %rdi, %rbx
        call    asm_local
        add     %rbx, %rax
        mov     -8(%rbp), %rbx
        leave
        .cfi_def_cfa %rsp, 8
        ret
        end     asm_frame

        .type   asm_local, @function
asm_local:
        .cfi_startproc
        lea     7(%rsi), %rax
        cmp     $20, %rax
        jb      1f
        sub     $20, %rax
1:      ret
        end     asm_local

/* Nobody calls it by name. */
        begin   asm_only_data
        lea     (%rdi,%rsi,4), %rax
        ret
        end     asm_only_data

        .section .note.GNU-stack, "", @progbits
