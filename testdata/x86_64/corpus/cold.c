/* Error paths that gcc moves away into `.cold` parts, and functions that are cold as a whole. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "corpus.h"

#define UNLIKELY(x) __builtin_expect(!!(x), 0)

COLD static void complain(const char *what, long value) {
    fprintf(stderr, "cold: %s: %ld\n", what, value);
    DO(value);
}

__attribute__((noreturn, noinline, cold)) static void give_up(const char *what, long value) {
    complain(what, value);
    abort();
}

NOINLINE static long checked_sum(const long *values, int count) {
    long sum = 0;
    if (UNLIKELY(!values)) {
        complain("no values", count);
        errno = EINVAL;
        return -1;
    }
    for (int i = 0; i < count; i++) {
        if (UNLIKELY(values[i] < 0)) {
            complain("negative", values[i]);
            complain("at", i);
            continue;
        }
        if (UNLIKELY(__builtin_add_overflow(sum, values[i], &sum))) give_up("overflow", i);
        DO(sum);
    }
    return sum;
}

NOINLINE static char *copy_text(const char *text) {
    size_t length = strlen(text);
    char *copy = malloc(length + 1);
    if (UNLIKELY(!copy)) {
        complain("memory", (long)length);
        give_up("no memory", 0);
    }
    memcpy(copy, text, length + 1);
    return copy;
}

struct state { int fd; int retries; long bytes; const char *name; };

NOINLINE static int step(struct state *state, int event) {
    switch (event) {
    case 0: state->fd = DO(3) & 0xff; return 0;
    case 1: state->bytes += DO(4); return 0;
    case 2:
        if (UNLIKELY(state->retries > 1000)) {
            complain(state->name, state->retries);
            state->retries = 0;
            return -EAGAIN;
        }
        state->retries++;
        return 0;
    case 3: state->bytes = DO(5); return 1;
    case 4: if (UNLIKELY(state->fd < 0)) give_up(state->name, state->fd); return 2;
    case 5: return DO(6) & 1;
    default: complain("event", event); return -EINVAL;
    }
}

/* A switch inside the cold part: its table leads from one part of the function to the other. */
NOINLINE static long cold_switch(int x, int reason) {
    long result = x;
    if (UNLIKELY(x > 1000000)) {
        switch (reason) {
        case 0: complain("zero", x); result = 1; break;
        case 1: complain("one", x); break;
        case 2: complain("two", x); result -= 7; break;
        case 3: give_up("three", x);
        case 4: complain("four", x); result *= 2; break;
        case 5: complain("five", x); result = 0; break;
        default: complain("other", x);
        }
        result += 1;
    }
    return result + DO(x);
}

NOINLINE static int goto_cleanup(int a, int b) {
    char *first = NULL, *second = NULL;
    int result = -1;
    first = copy_text("first");
    if (UNLIKELY(a < 0)) goto fail;
    second = copy_text("second");
    if (UNLIKELY(b < 0)) goto fail;
    result = DO(first[a % 5] + second[b % 6]) & 0xff;
out:
    free(first);
    free(second);
    return result;
fail:
    complain("arguments", a);
    complain("and", b);
    goto out;
}

#define CHECKED(n)                                                        \
    NOINLINE static long checked_##n(long x) {                            \
        if (UNLIKELY(x == -(n))) { complain("bad " #n, x); return -1; }   \
        if (UNLIKELY(x == -2 * (n))) give_up("worse " #n, x);             \
        return DO(x + (n));                                               \
    }
CHECKED(1) CHECKED(2) CHECKED(3) CHECKED(4) CHECKED(5) CHECKED(6) CHECKED(7) CHECKED(8) CHECKED(9) CHECKED(10)

int main(void) {
    static const long values[] = {3, 1, 4, 1, 5, 9, 2, 6};
    struct state state = {1, 0, 0, "state"};
    for (int i = 0; i < 100; i++) {
        DO(checked_sum(values, i & 7)), DO(step(&state, i % 6)), DO(cold_switch(i, i % 7)), DO(goto_cleanup(i, i + 1));
        DO(checked_1(i) ^ checked_2(i) ^ checked_3(i) ^ checked_4(i) ^ checked_5(i));
        DO(checked_6(i) ^ checked_7(i) ^ checked_8(i) ^ checked_9(i) ^ checked_10(i));
    }
    return report("cold");
}
