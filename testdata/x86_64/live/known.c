// Functions whose instructions per cycle are known by construction: a chain of multiplications, three cycles each, and
// instructions that need nothing beside it.
//   gcc -O2 -o known known.c
// known_low: 44 instructions in 30 cycles (1.467); known_high: 72 instructions in 30 cycles (2.400); each 1000 times.
#define CHAIN "imul %%rax, %%rax\n"
#define CHAIN10 CHAIN CHAIN CHAIN CHAIN CHAIN CHAIN CHAIN CHAIN CHAIN CHAIN
#define NOP4 "nop\nnop\nnop\nnop\n"
#define NOP16 NOP4 NOP4 NOP4 NOP4

__attribute__((noipa)) void known_low(void) {
    __asm__ volatile("mov $1000, %%ecx\n1:\n" CHAIN10 NOP16 NOP16 "dec %%ecx\njnz 1b\n" ::: "rax", "rcx", "cc");
}

__attribute__((noipa)) void known_high(void) {
    __asm__ volatile("mov $1000, %%ecx\n1:\n" CHAIN10 NOP16 NOP16 NOP16 NOP4 NOP4 NOP4 "dec %%ecx\njnz 1b\n" ::: "rax", "rcx", "cc");
}

int main(void) {
    for (;;) {
        known_low();
        known_high();
    }
}
