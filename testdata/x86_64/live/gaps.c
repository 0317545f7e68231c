// Tells, on SIGTERM, the longest time in microseconds that it stood still, and how long a call of small takes.
//   gcc -O2 -o gaps gaps.c
#include <signal.h>
#include <stdio.h>
#include <time.h>

static volatile sig_atomic_t stop;

__attribute__((noipa)) long small(long x) {
    return x * 3 + 1;
}

static void on_term(int signal) {
    (void)signal;
    stop = 1;
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1e9 + time.tv_nsec;
}

int main(void) {
    signal(SIGTERM, on_term);
    double longest = 0, shortest = 1e9, before = now();
    while (!stop) {
        for (long i = 0; i < 1000; i++)
            small(i);
        double after = now(), took = after - before;
        longest = took > longest ? took : longest;
        shortest = took < shortest ? took : shortest;
        before = after;
    }
    printf("%.1f %.4f\n", longest / 1e3, shortest / 1e3);
    return 0;
}
