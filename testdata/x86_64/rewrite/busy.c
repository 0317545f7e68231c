/* Threads that never stop working, in a function with many ways through it: whatever ends them ends them there.
   The argument says how many threads work beside the first one, which then ends the process. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static volatile unsigned sink;

__attribute__((noipa)) unsigned mix(unsigned x, int rounds) {
    for (int i = 0; i < rounds; i++) {
        if (x & 1)
            x = x * 3 + 1;
        else if (x & 2)
            x /= 2;
        else {
            x ^= x >> 3;
            x += x % 7 == 3 ? 11 : 1;
        }
        while (x > 1000000)
            x >>= 2;
        switch (x & 7) {
        case 0: x += 3; break;
        case 1: x ^= 9; break;
        case 2: x *= 5; break;
        case 3: x += 1; break;
        case 4: x -= 4; break;
        }
    }
    return x;
}

__attribute__((noipa)) void *work(void *seed) {
    for (unsigned x = *(unsigned *)seed;;) {
        x = mix(x, 1000);
        sink += x;
    }
    return NULL;
}

int main(int argc, char **argv) {
    static unsigned seeds[16];
    int threads = argc > 1 ? atoi(argv[1]) : 0;
    for (int i = 0; i < threads; i++) {
        pthread_t thread;
        seeds[i] = i;
        pthread_create(&thread, NULL, work, &seeds[i]);
    }
    puts("ready");
    fflush(stdout);
    if (threads == 0)
        work(seeds);
    nanosleep(&(struct timespec){.tv_nsec = 50 * 1000 * 1000}, NULL);
    return 0;
}
