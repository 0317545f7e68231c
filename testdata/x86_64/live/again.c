// A process that starts its program again on SIGUSR1, in new memory and under the same number. It tells when it starts,
// and if a result is wrong.
//   gcc -O2 -o again again.c
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static volatile sig_atomic_t again;

static void on_signal(int signal) {
    (void)signal;
    again = 1;
}

__attribute__((noipa)) long small(long x) {
    return x * 3 + 1;
}

int main(int count, char **arguments) {
    (void)count;
    signal(SIGUSR1, on_signal);
    puts("redstep: it starts");
    fflush(stdout);
    for (long i = 0; !again; i++)
        if (small(i) != i * 3 + 1) {
            puts("wrong");
            return 1;
        }
    execv("/proc/self/exe", arguments);
    return 1;
}
