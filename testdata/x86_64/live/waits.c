// Threads that work, and one that cannot be stopped, or a process that shares their memory. Tells its steps after every
// result was checked, and the longest time that a worker stood still, in milliseconds.
//   gcc -O2 -pthread -o waits waits.c
// Arguments: "vfork" (a child that lives until it reads a byte) or "clone" (the same, and nobody waits for it).
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static long longest;

__attribute__((noipa)) long small(long x) {
    return x * 3 + 1;
}

static long now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000 + time.tv_nsec;
}

static void check(long n) {
    for (long i = 0; i < n; i++)
        if (small(i) != i * 3 + 1) {
            printf("wrong\n");
            exit(1);
        }
}

static void *work(void *unused) {
    for (long last = now();;) {
        check(1000);
        long time = now();
        if (time - last > __atomic_load_n(&longest, __ATOMIC_RELAXED))
            __atomic_store_n(&longest, time - last, __ATOMIC_RELAXED);
        last = time;
    }
    return unused;
}

static int until_told(void *unused) {
    (void)unused;
    char byte;
    _exit(read(0, &byte, 1) == 1 ? 0 : 1);
}

static void *wait_for_child(void *unused) {
    pid_t child = vfork();
    if (child == 0)
        until_told(NULL);
    int status = 1;
    if (waitpid(child, &status, 0) != child || status != 0)
        printf("wrong child\n");
    return unused;
}

int main(int count, char **arguments) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    pthread_t thread;
    pthread_create(&thread, NULL, work, NULL);
    if (count > 1 && strcmp(arguments[1], "vfork") == 0)
        pthread_create(&thread, NULL, wait_for_child, NULL);
    else if (count > 1) {
        static char stack[65536] __attribute__((aligned(16)));
        clone(until_told, stack + sizeof stack, CLONE_VM | SIGCHLD, NULL);
    }
    for (;;) {
        usleep(20000);
        check(1000);
        printf("redstep: %ld\n", __atomic_exchange_n(&longest, 0, __ATOMIC_RELAXED) / 1000000);
    }
}
