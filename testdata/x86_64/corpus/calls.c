/* Calls that do not come back, jumps that are calls, and functions that only data knows. */
#include <setjmp.h>
#include <stdlib.h>
#include <unistd.h>

#include "corpus.h"

/* Functions that never return: by a library call, by a loop, by each other, by a trap. */
__attribute__((noinline)) static void stop(int code) { DO(code); exit(code); }
__attribute__((noinline)) static void stop_deeper(int code) { DO(1); stop(code + 1); }
__attribute__((noinline)) static void stop_deepest(int code) { DO(2); stop_deeper(code + 1); }
__attribute__((noinline)) static void raw_exit(int code) { _exit(code); }
__attribute__((noinline)) static void spin(void) { for (;;) DO(3); }
__attribute__((noinline)) static void trap(void) { DO(4); __builtin_trap(); }

/* Returns for some arguments only. */
__attribute__((noinline)) static int stop_if(int x) {
    if (x > 1000000) stop_deepest(x);
    return x + 1;
}

/* Ends in a call that does not return: the code behind belongs to the next function. */
__attribute__((noinline)) static int last_is_a_call(int x) {
    if (x < 1000000) return DO(x) & 1;
    stop(x);
    __builtin_unreachable();
}

__attribute__((noinline)) static int one_of_many_ends(int x) {
    switch (x) {
    case 1000000: stop(1); break;
    case 1000001: stop_deeper(1); break;
    case 1000002: raw_exit(1); break;
    case 1000003: spin(); break;
    case 1000004: trap(); break;
    case 1000005: abort();
    }
    return DO(x) & 3;
}

/* Mutual recursion that never ends. */
__attribute__((noinline)) static void pong(int x);
__attribute__((noinline)) static void ping(int x) { DO(x); pong(x + 1); DO(x); }
__attribute__((noinline)) static void pong(int x) { DO(-x); ping(x + 1); DO(-x); }

/* Tail calls. */
NOINLINE static long leaf_a(long x) { return DO(x) + 1; }
NOINLINE static long leaf_b(long x) { return DO(x) - 1; }
NOINLINE static long leaf_c(long x) { return DO(x * 2); }
NOINLINE static long direct_tail(long x) { DO(5); return leaf_a(x + 1); }
NOINLINE static long chained_tail(long x) { DO(6); return direct_tail(x ^ 3); }
NOINLINE static long either_tail(long x) { return x & 1 ? leaf_a(x) : leaf_b(x); }
NOINLINE static long conditional_tail(long x) { if (x > 10) return leaf_c(x); return x; }
NOINLINE static long guarded_tail(long x) { if (!x) return leaf_a(9); DO(x); return leaf_b(x); }
NOINLINE static long swapped_tail(long x, long y) { return y ? swapped_tail(y - 1, x) : leaf_c(x); }

static long (*volatile pointer)(long) = leaf_b;
NOINLINE static long pointer_tail(long x) { return pointer(x + 2); }
NOINLINE static long argument_tail(long (*f)(long), long x) { DO(7); return f(x); }

struct operations { long (*first)(long); long (*second)(long); const char *name; };
NOINLINE static long member_tail(const struct operations *o, long x) { return x & 1 ? o->first(x) : o->second(x); }

/* A table of functions, read by an indirect tail call: looks like a jump table and is none. */
NOINLINE static long table_tail(unsigned which, long x) {
    static long (*const table[])(long) = {leaf_a, leaf_b, leaf_c, direct_tail, chained_tail, either_tail};
    if (which < sizeof table / sizeof *table) return table[which](x);
    return 0;
}

NOINLINE static long switch_of_tails(int which, long x) {
    switch (which) {
    case 0: return leaf_a(x);
    case 1: return leaf_b(x + 1);
    case 2: return leaf_c(x + 2);
    case 3: return direct_tail(x);
    case 4: return chained_tail(x + 3);
    case 5: return either_tail(x);
    default: return conditional_tail(x);
    }
}

/* Called through data only. */
static long only_data_a(long x) { return DO(x + 100); }
static long only_data_b(long x) { return DO(x + 200); }
static long only_data_c(long x) { return DO(x + 300); }
static const struct operations operations[] = {
    {only_data_a, only_data_b, "ab"}, {only_data_b, only_data_c, "bc"}, {only_data_c, only_data_a, "ca"}};

static int compare(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

/* setjmp returns twice. */
static jmp_buf jump;
NOINLINE static void deep(int x) { if (x == 0) longjmp(jump, 7); deep(x - 1); DO(x); }
NOINLINE static int landing(int x) {
    volatile int rounds = 0;
    int came = setjmp(jump);
    if (came == 0 && x >= 0) deep(x);
    if (came == 7 && rounds++ < 3) longjmp(jump, 8);
    switch (came) {
    case 0: return 0;
    case 7: return DO(1) & 1;
    case 8: return DO(2) & 1;
    default: stop(came);
    }
    return 1;
}

/* A resolver picks the implementation when the program is loaded. */
static long picked_fast(long x) { return DO(x) * 3; }
static long picked_slow(long x) { return DO(x) * 5; }
static long (*resolve_picked(void))(long) { return sizeof(long) == 8 ? picked_fast : picked_slow; }
long picked(long x) __attribute__((ifunc("resolve_picked")));

/* Thread-local variables. */
static __thread long counter = 5;
__thread long exported_counter;
NOINLINE static long count(long x) { counter += x; exported_counter ^= counter; return DO(counter); }

/* Run before and after main, known from .init_array and .fini_array alone. */
__attribute__((constructor)) static void before_main(void) { DO(11); }
__attribute__((constructor(200))) static void before_main_early(void) { DO(12); }
__attribute__((destructor)) static void after_main(void) { DO(13); }
static void at_exit(void) { DO(14); }

int main(int argc, char **argv) {
    (void)argv;
    if (argc > 1000) ping(argc);
    atexit(at_exit);
    int numbers[] = {5, 2, 8, 1, 9, 3};
    qsort(numbers, 6, sizeof *numbers, compare);
    for (int i = 0; i < 50; i++) {
        DO(stop_if(i) + last_is_a_call(i) + one_of_many_ends(i) + numbers[i % 6]);
        DO(chained_tail(i) ^ either_tail(i) ^ conditional_tail(i) ^ guarded_tail(i) ^ swapped_tail(i, i & 3));
        DO(pointer_tail(i) ^ argument_tail(leaf_c, i) ^ member_tail(&operations[i % 3], i) ^ table_tail(i % 7, i));
        DO(switch_of_tails(i % 8, i) ^ landing(i & 7) ^ picked(i) ^ count(i));
    }
    return report("calls");
}
