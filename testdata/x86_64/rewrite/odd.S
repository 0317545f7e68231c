# Code that no compiler writes: results in flags, values in any register, jumps into the middle of another function,
# functions of a few bytes side by side, a jump table in the text. Some functions have unwind tables, some have not.
    .text

# The answer is the carry: set if edi is below 10.
    .globl in_carry
    .type in_carry, @function
in_carry:
    .cfi_startproc
    cmp $10, %edi
    ret
    .cfi_endproc
    .size in_carry, .-in_carry

# The answer is the zero and sign flags; the arguments are in r11 and rcx.
    .type compare_r11, @function
compare_r11:
    .cfi_startproc
    cmp %rcx, %r11
    jne 1f
    test %eax, %eax
    cmp %eax, %eax
1:  ret
    .cfi_endproc
    .size compare_r11, .-compare_r11

# int odd_flags(int n): how many of 0..n-1 are below 10, plus 100 for each that equals 5.
    .globl odd_flags
    .type odd_flags, @function
odd_flags:
    .cfi_startproc
    push %rbx
    .cfi_adjust_cfa_offset 8
    .cfi_offset %rbx, -16
    push %rbp
    .cfi_adjust_cfa_offset 8
    .cfi_offset %rbp, -24
    mov %edi, %ebx
    xor %ebp, %ebp
    xor %r10d, %r10d
2:  cmp %ebx, %r10d
    jge 4f
    mov %r10d, %edi
    call in_carry
    adc $0, %ebp
    mov %r10, %r11
    mov $5, %ecx
    call compare_r11
    jne 3f
    add $100, %ebp
3:  inc %r10d
    jmp 2b
4:  mov %ebp, %eax
    pop %rbp
    .cfi_adjust_cfa_offset -8
    pop %rbx
    .cfi_adjust_cfa_offset -8
    ret
    .cfi_endproc
    .size odd_flags, .-odd_flags

# Keeps every register, and r8, r9, r11 are what its caller relies on: adds in rax only.
    .type add_rax, @function
add_rax:
    .cfi_startproc
    test %rdi, %rdi
    jz 1f
    add %rdi, %rax
1:  ret
    .cfi_endproc
    .size add_rax, .-add_rax

# long odd_kept(long a): uses r8 to r11, rsi and the vector registers across calls.
    .globl odd_kept
    .type odd_kept, @function
odd_kept:
    .cfi_startproc
    mov $1, %r8d
    mov $20, %r9d
    mov $300, %r10d
    mov $4000, %r11d
    mov $50000, %esi
    xor %eax, %eax
    mov $7, %ecx
1:  call add_rax
    add %r8, %rax
    add %r9, %rax
    add %r10, %rax
    add %r11, %rax
    add %rsi, %rax
    loop 1b
    ret
    .cfi_endproc
    .size odd_kept, .-odd_kept

# int odd_middle(int n): jumps into the middle of the function behind it.
    .globl odd_middle
    .type odd_middle, @function
odd_middle:
    .cfi_startproc
    mov $1, %eax
    cmp $3, %edi
    jg middle
    jmp other_middle
    .cfi_endproc
    .size odd_middle, .-odd_middle
    .globl odd_whole
    .type odd_whole, @function
odd_whole:
    .cfi_startproc
    mov $1000, %eax
    add %edi, %edi
middle:
    add %edi, %eax
other_middle:
    lea (%rax,%rax,2), %eax
    ret
    .cfi_endproc
    .size odd_whole, .-odd_whole

# Functions of one to four bytes, side by side without padding.
    .globl tiny_1, tiny_2, tiny_3, tiny_4, tiny_5
    .type tiny_1, @function
tiny_1:
    ret
    .size tiny_1, .-tiny_1
    .type tiny_2, @function
tiny_2:
    rep ret
    .size tiny_2, .-tiny_2
    .type tiny_3, @function
tiny_3:
    xor %eax, %eax
    ret
    .size tiny_3, .-tiny_3
    .type tiny_4, @function
tiny_4:
    mov %rdi, %rax
    ret
    .size tiny_4, .-tiny_4
    .type tiny_5, @function
tiny_5:
    lea 1(%rdi), %rax
    ret
    .size tiny_5, .-tiny_5

# int odd_table(unsigned i): the table is in the text, in front of and behind code.
    .globl odd_table
    .type odd_table, @function
    .p2align 4
odd_table:
    .cfi_startproc
    cmp $4, %edi
    ja 9f
    mov %edi, %edi
    lea 1f(%rip), %rdx
    movslq (%rdx,%rdi,4), %rax
    add %rdx, %rax
    jmp *%rax
    .p2align 2
1:  .long 2f-1b, 3f-1b, 4f-1b, 2f-1b, 5f-1b
2:  mov $20, %eax
    ret
3:  mov $30, %eax
4:  add $4, %eax
    ret
5:  mov $50, %eax
    ret
9:  mov $-1, %eax
    ret
    .cfi_endproc
    .size odd_table, .-odd_table

# Two entries, the second in front of a shared tail; no unwind table, no padding.
    .globl odd_first, odd_second
    .type odd_first, @function
    .type odd_second, @function
odd_first:
    add $5, %rdi
odd_second:
    lea (%rdi,%rdi), %rax
    test $8, %al
    jz 1f
    neg %rax
1:  ret
    .size odd_first, .-odd_first
    .size odd_second, .-odd_second

# long odd_red(long a): lives in the red zone, with the flags alive across a loop's edges.
    .globl odd_red
    .type odd_red, @function
odd_red:
    .cfi_startproc
    mov %rdi, -8(%rsp)
    mov %rsi, -16(%rsp)
    movq $0, -128(%rsp)
    mov $10, %ecx
    clc
1:  mov -8(%rsp), %rax
    adc -128(%rsp), %rax
    mov %rax, -128(%rsp)
    dec %ecx
    jrcxz 2f
    jmp 1b
2:  setc %dl
    mov -128(%rsp), %rax
    movzbl %dl, %edx
    add -16(%rsp), %rax
    add %rdx, %rax
    ret
    .cfi_endproc
    .size odd_red, .-odd_red

# Asks for its own address by a call to the next instruction, and returns through a pushed address.
    .globl odd_here
    .type odd_here, @function
odd_here:
    .cfi_startproc
    call 1f
1:  pop %rax
    lea 1b(%rip), %rdx
    sub %rdx, %rax
    lea 2f(%rip), %rdx
    push %rdx
    ret
2:  add $77, %rax
    ret
    .cfi_endproc
    .size odd_here, .-odd_here

# Text instructions, with the direction flag set and cleared, and a repeated one.
    .globl odd_strings
    .type odd_strings, @function
odd_strings:
    .cfi_startproc
    mov %rdi, %r8
    lea 15(%rdi), %rdi
    mov $16, %ecx
    mov $0x61, %al
    std
    rep stosb
    cld
    mov %r8, %rdi
    mov $16, %ecx
    mov $0x62, %al
    repne scasb
    setz %al
    movzbl %al, %eax
    ret
    .cfi_endproc
    .size odd_strings, .-odd_strings

# A function whose start is the target of its own loop, and whose end runs into the next.
    .globl odd_loop
    .type odd_loop, @function
odd_loop:
    .cfi_startproc
    sub $3, %rdi
    ja odd_loop
    .cfi_endproc
    .size odd_loop, .-odd_loop
    .globl odd_end
    .type odd_end, @function
odd_end:
    .cfi_startproc
    mov %rdi, %rax
    ret
    .cfi_endproc
    .size odd_end, .-odd_end

    .section .note.GNU-stack, "", @progbits
