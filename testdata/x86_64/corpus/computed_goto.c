/* Labels as values: interpreters whose dispatch jumps through a table of code addresses. */
#include "corpus.h"

enum { PUSH, ADD, SUB, DUP, SWAP, LOOP, TRACE, HALT };

static const unsigned char program[] = {PUSH, 9, PUSH, 3, ADD, DUP, TRACE, PUSH, 1, SUB, TRACE, LOOP, 10, SWAP, HALT};

/* A static table of addresses, and one dispatch jump that all operations share. */
NOINLINE static long one_dispatch(const unsigned char *code, int budget) {
    static const void *const table[] = {&&push, &&add, &&sub, &&dup, &&swap, &&loop, &&tell, &&halt};
    long stack[32] = {0}, *top = stack + 8;
    const unsigned char *pc = code;
dispatch:
    if (--budget < 0) return *top;
    goto *table[*pc++];
push: *++top = *pc++; if (top > stack + 20) top = stack + 8; goto dispatch;
add: top[-1] += top[0]; top--; DO(1); goto dispatch;
sub: top[-1] -= top[0]; top--; DO(2); goto dispatch;
dup: top[1] = top[0]; top++; DO(3); goto dispatch;
swap: { long t = top[0]; top[0] = top[-1]; top[-1] = t; DO(4); goto dispatch; }
loop: if (*top > 0 && top > stack + 2) { pc = code + 5; DO(5); } else pc++; goto dispatch;
tell: DO(*top); goto dispatch;
halt: return *top;
}

#define NEXT if (--budget < 0 || top < stack + 2 || top > stack + 28) return DO(budget); goto *table[*pc++]

/* Each operation ends in a dispatch jump of its own, all through one table. */
NOINLINE static long many_dispatches(const unsigned char *code, int budget) {
    static const void *const table[] = {&&push, &&add, &&sub, &&dup, &&swap, &&loop, &&tell, &&halt};
    long stack[32] = {0}, *top = stack + 8;
    const unsigned char *pc = code;
    NEXT;
push: *++top = *pc++; NEXT;
add: top[-1] += top[0]; top--; NEXT;
sub: top[-1] -= top[0]; top--; NEXT;
dup: top[1] = top[0]; top++; NEXT;
swap: { long t = top[0]; top[0] = top[-1]; top[-1] = t; NEXT; }
loop: if (*top > 0) pc = code + 5; else pc++; NEXT;
tell: DO(*top); NEXT;
halt: return *top;
}

/* Offsets from a label: no relocation at load time, so the table is read-only in a PIE too. */
NOINLINE static long by_offsets(const unsigned char *code, int budget) {
    static const int offsets[] = {&&push - &&dispatch, &&add - &&dispatch, &&sub - &&dispatch, &&dup - &&dispatch,
                                  &&swap - &&dispatch, &&loop - &&dispatch, &&tell - &&dispatch, &&halt - &&dispatch};
    long a = 1, b = 2;
    const unsigned char *pc = code;
dispatch:
    if (--budget < 0) return a;
    goto *(&&dispatch + offsets[*pc++]);
push: b = a; a = *pc++; goto dispatch;
add: a += b; DO(a); goto dispatch;
sub: a -= b; DO(b); goto dispatch;
dup: b = a; DO(7); goto dispatch;
swap: { long t = a; a = b; b = t; goto dispatch; }
loop: if (a > 0) pc = code; else pc++; goto dispatch;
tell: DO(a ^ b); goto dispatch;
halt: return a;
}

/* Direct threading: the code itself holds the labels, copied out of a table first. No jump reads the table. */
NOINLINE static long threaded(const unsigned char *code, int length, int budget) {
    static const void *const copied_labels[] = {&&one, &&two, &&three, &&four};
    const void *thread[16];
    for (int i = 0; i < 16; i++) thread[i] = copied_labels[i < length ? code[i] & 3 : 3];
    const void **pc = thread;
    long a = 0;
    goto **pc++;
one: a += DO(1); goto **pc++;
two: a -= DO(2); goto **pc++;
three: a ^= DO(3); goto **pc++;
four: if (--budget > 0) { pc = thread; goto **pc++; } return a;
}

/* A choice between two labels needs no table at all. */
NOINLINE static int two_labels(int x) {
    void *next = x & 1 ? &&odd : &&even;
    goto *next;
odd: DO(1); return 1;
even: DO(2); return 0;
}

int main(void) {
    for (int i = 1; i < 200; i++) {
        DO(one_dispatch(program, i));
        DO(many_dispatches(program, i));
        DO(by_offsets(program, i));
        DO(threaded(program, sizeof program, i));
        DO(two_labels(i));
    }
    return report("computed_goto");
}
