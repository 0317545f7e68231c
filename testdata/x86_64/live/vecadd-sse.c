// The program of the PADRONE paper's section 3.3: redstep calls vecadd again and again and tells how long that takes.
// Compile for plain x86-64, so that vecadd uses SSE2:
//   gcc -O3 -o vecadd-sse vecadd-sse.c
// Arguments: how many redsteps (0: for ever), and how many threads.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { LENGTH = 512, CALLS = 100000 };

// noipa: the compiler must not make a version of it for the one caller that it sees.
__attribute__((noipa)) void vecadd(double *sum, const double *a, const double *b, long length) {
    for (long i = 0; i < length; i++)
        sum[i] = a[i] + b[i];
    __asm__ volatile("" ::: "memory");
}

__attribute__((noipa)) static void redstep(double *sum, const double *a, const double *b) {
    for (int call = 0; call < CALLS; call++)
        vecadd(sum, a, b, LENGTH);
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1e3 + time.tv_nsec * 1e-6;
}

static long steps;

static void *work(void *unused) {
    (void)unused;
    double *sum = aligned_alloc(64, LENGTH * sizeof(double));
    double *a = aligned_alloc(64, LENGTH * sizeof(double));
    double *b = aligned_alloc(64, LENGTH * sizeof(double));
    for (long step = 0; steps == 0 || step < steps; step++) {
        for (int i = 0; i < LENGTH; i++) {
            a[i] = i + step % 7;
            b[i] = 2 * i;
        }
        double begin = now();
        redstep(sum, a, b);
        double took = now() - begin;
        for (int i = 0; i < LENGTH; i++) {
            if (sum[i] != a[i] + b[i]) {
                printf("wrong\n");
                fflush(stdout);
                exit(1);
            }
        }
        printf("redstep: %ld %.2f ms %.2f ns per iter\n", step, took, took * 1e6 / CALLS);
        fflush(stdout);
    }
    return NULL;
}

int main(int count, char **arguments) {
    steps = count > 1 ? atol(arguments[1]) : 0;
    int threads = count > 2 ? atoi(arguments[2]) : 1;
    pthread_t others[64];
    for (int i = 1; i < threads && i < 64; i++)
        pthread_create(&others[i], NULL, work, NULL);
    work(NULL);
    for (int i = 1; i < threads && i < 64; i++)
        pthread_join(others[i], NULL);
    return 0;
}
