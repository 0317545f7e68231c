/* What every C and C++ program of the corpus shares: work that no optimiser can fold away.
 *
 * All writes go through one volatile variable. The bodies of two cases therefore stay different code, and a switch
 * stays a switch instead of becoming a table of constants. The programs print the final value: a rewritten program
 * must print the same. */
#ifndef CORPUS_H
#define CORPUS_H

#include <stdio.h>

static volatile unsigned long trace_value = 1;

/* Mixes one number into the trace. */
#define DO(n) (trace_value = trace_value * 31 + (unsigned long)(n))

#define NOINLINE __attribute__((noinline))
#define COLD __attribute__((noinline, cold))

static int report(const char *program) {
    printf("%s %lx\n", program, trace_value);
    return 0;
}

#endif
