// Tells, on SIGTERM, the longest time in microseconds that it stood still, how long a call of small takes at best, and how
// long at worst: in nanoseconds, by the fastest of eight thousand calls that follow each other. SIGUSR1 begins anew.
//   gcc -O2 -o gaps gaps.c
#include <signal.h>
#include <stdio.h>
#include <time.h>

static volatile sig_atomic_t stop, anew;

__attribute__((noipa)) long small(long x) {
    return x * 3 + 1;
}

static void on_term(int signal) {
    (void)signal;
    stop = 1;
}

static void on_usr1(int signal) {
    (void)signal;
    anew = 1;
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1e9 + time.tv_nsec;
}

int main(void) {
    signal(SIGTERM, on_term);
    signal(SIGUSR1, on_usr1);
    double longest = 0, shortest = 1e9, slowest = 0, of_eight = 1e9, before = now();
    int in_window = 0;
    while (!stop) {
        for (long i = 0; i < 1000; i++)
            small(i);
        double after = now(), took = after - before;
        longest = took > longest ? took : longest;
        shortest = took < shortest ? took : shortest;
        of_eight = took < of_eight ? took : of_eight;
        if (++in_window == 8) {
            slowest = of_eight > slowest ? of_eight : slowest;
            of_eight = 1e9;
            in_window = 0;
        }
        if (anew) {
            anew = in_window = 0;
            longest = slowest = 0;
            shortest = of_eight = 1e9;
        }
        before = after;
    }
    printf("%.1f %.4f %.4f\n", longest / 1e3, shortest / 1e3, slowest / 1e3);
    return 0;
}
