// Threads that call a function a known number of times in all when they are told to (SIGUSR1), all at once.
//   gcc -O2 -pthread -o volley volley.c
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

enum { THREADS = 4, CALLS = 500000 };

static pthread_barrier_t told;
static volatile long sum;

__attribute__((noipa)) long shot(long x) {
    return x ^ 5;
}

static void *shoot(void *unused) {
    pthread_barrier_wait(&told);
    for (long i = 0; i < CALLS; i++)
        sum = shot(i);
    return unused;
}

int main(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    pthread_barrier_init(&told, NULL, THREADS + 1);
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, shoot, NULL) != 0)
            abort();
    int got;
    sigwait(&set, &got);
    pthread_barrier_wait(&told);
    for (;;)
        pause();
}
