// A loop that only a pointer leads to: its control flow is not known, and yet its instructions are sampled.
//   gcc -O2 -o hidden hidden.c
static void *volatile place;

__attribute__((noipa)) void hidden(void) {
    __asm__ volatile("lea 1f(%%rip), %%rax\n"
                     "mov %%rax, %0\n"
                     "mov $1000000, %%ecx\n"
                     "mov %0, %%rax\n"
                     "jmp *%%rax\n"
                     "1: imul %%rdx, %%rdx\n"
                     "dec %%ecx\n"
                     "jnz 1b\n"
                     : "+m"(place)::"rax", "rcx", "rdx", "cc");
}

int main(void) {
    for (;;)
        hidden();
}
