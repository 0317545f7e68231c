/* Hand-written assembly without unwind information: nothing but the code tells where functions are.
   Symbols have types and sizes, so that the unstripped twin still knows the truth. */
        .file   "assembly_bare.S"
        .text

        .macro begin name
        .globl  \name
        .type   \name, @function
        .p2align 4
\name:
        .endm

        .macro end name
        .size   \name, . - \name
        .endm

        begin   bare_twice
        lea     (%rdi,%rdi), %rax
        ret
        end     bare_twice

/* Calls a function that is known from this call alone, and jumps to one known from this jump alone. */
        begin   bare_chain
        push    %rbx
        mov     %rsi, %rbx
        call    bare_hidden
        lea     (%rax,%rbx), %rdi
        pop     %rbx
        jmp     bare_hidden_tail
        end     bare_chain

        .type   bare_hidden, @function
        .p2align 4
bare_hidden:
        lea     3(%rdi), %rax
        test    %rsi, %rsi
        je      1f
        imul    %rsi, %rax
1:      ret
        end     bare_hidden

        .type   bare_hidden_tail, @function
        .p2align 4
bare_hidden_tail:
        mov     %rdi, %rax
        ror     $5, %rax
        ret
        end     bare_hidden_tail

        begin   bare_loop
        xor     %eax, %eax
        and     $15, %edi
        jz      2f
1:      add     %rdi, %rax
        sub     $1, %rdi
        jnz     1b
2:      ret
        end     bare_loop

/* Two entries into one body, both called. */
        .type   bare_first_entry, @function
        .p2align 4
bare_first_entry:
        neg     %rdi
        .globl  bare_second_entry
        .type   bare_second_entry, @function
bare_second_entry:
        lea     11(%rdi), %rax
        test    %rax, %rax
        jns     1f
        neg     %rax
1:      ret
        .size   bare_second_entry, . - bare_second_entry
        end     bare_first_entry

/* The jump table stands in the text, right behind the jump. */
        begin   bare_switch
        cmp     $4, %rdi
        ja      .Lswitch_other
        lea     bare_switch_table(%rip), %rdx
        movslq  (%rdx,%rdi,4), %rax
        add     %rdx, %rax
        jmp     *%rax
        .type   bare_switch_table, @object
        .p2align 2
bare_switch_table:
        .long   .Lswitch_1 - bare_switch_table
        .long   .Lswitch_2 - bare_switch_table
        .long   .Lswitch_3 - bare_switch_table
        .long   .Lswitch_2 - bare_switch_table
        .long   .Lswitch_4 - bare_switch_table
        end     bare_switch_table
.Lswitch_1:
        mov     $100, %eax
        ret
.Lswitch_2:
        lea     200(%rsi), %rax
        ret
.Lswitch_3:
        mov     %rsi, %rax
        add     $300, %rax
        ret
.Lswitch_4:
        push    %rsi
        call    bare_first_entry
        pop     %rsi
        add     %rsi, %rax
        ret
.Lswitch_other:
        xor     %eax, %eax
        ret
        end     bare_switch

/* Two functions with a common tail that lies inside the first. */
        begin   bare_shared_a
        add     $1, %rdi
        xor     %rsi, %rdi
.Lshared:
        mov     %rdi, %rax
        bswap   %rax
        shr     $40, %rax
        ret
        end     bare_shared_a

        begin   bare_shared_b
        sub     $1, %rdi
        imul    %rsi, %rdi
        jmp     .Lshared
        end     bare_shared_b

/* The old loop instruction, and jrcxz. */
        begin   bare_counted
        mov     %rsi, %rcx
        mov     %rdi, %rax
        jrcxz   2f
1:      lea     1(%rax,%rax), %rax
        loop    1b
2:      ret
        end     bare_counted

/* Known from a table in the data alone. */
        .type   bare_data_a, @function
        .p2align 4
bare_data_a:
        lea     (%rdi,%rsi), %rax
        ret
        end     bare_data_a
        .type   bare_data_b, @function
        .p2align 4
bare_data_b:
        mov     %rdi, %rax
        sub     %rsi, %rax
        ret
        end     bare_data_b

        .section .data.rel.ro, "aw"
        .globl  bare_operations
        .type   bare_operations, @object
        .p2align 3
bare_operations:
        .quad   bare_data_a, bare_data_b, asm_only_data
        end     bare_operations

        .section .note.GNU-stack, "", @progbits
