// A program that is hard to change while it runs: threads that call a function of a few nanoseconds all the time, or one
// that forks, makes threads and takes signals all the time, or one that is interrupted in that function and stays in the
// handler for long. It checks every result, and tells on SIGTERM how it went.
//   gcc -O2 -pthread -o torture torture.c
// Arguments: "hot" and how many threads, "churn", or "signals".
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile sig_atomic_t stop;
static long calls;

__attribute__((noipa)) long small(long x) {
    return x * 3 + 1;
}

static void wrong(void) {
    static const char text[] = "wrong\n";
    if (write(1, text, sizeof text - 1) < 0)
        abort();
    _exit(1);
}

static void check(long n) {
    for (long i = 0; i < n; i++)
        if (small(i) != i * 3 + 1)
            wrong();
    __atomic_add_fetch(&calls, n, __ATOMIC_RELAXED);
}

static void *hot(void *unused) {
    while (!stop)
        check(100000);
    return unused;
}

static void *brief(void *unused) {
    check(1000);
    return unused;
}

static void on_alarm(int signal) {
    (void)signal;
    check(10);
}

// Most of the time the thread is here, and will go on somewhere in small.
static void on_alarm_for_long(int signal) {
    (void)signal;
    check(50000);
}

static void on_term(int signal) {
    (void)signal;
    stop = 1;
}

static void alarms(void (*handler)(int), int microseconds) {
    struct sigaction alarm = {.sa_handler = handler, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &alarm, NULL);
    struct itimerval often = {{0, microseconds}, {0, microseconds}};
    setitimer(ITIMER_REAL, &often, NULL);
}

static void churn(void) {
    alarms(on_alarm, 500);
    while (!stop) {
        pthread_t threads[4];
        int made = 0;
        while (made < 4 && pthread_create(&threads[made], NULL, brief, NULL) == 0)
            made++;
        pid_t child = fork();
        if (child == 0) {
            check(1000);
            _exit(0);
        }
        int status = 0;
        if (child > 0 && (waitpid(child, &status, 0) != child || status != 0))
            wrong();
        for (int i = 0; i < made; i++)
            pthread_join(threads[i], NULL);
    }
}

int main(int count, char **arguments) {
    struct sigaction term = {.sa_handler = on_term, .sa_flags = SA_RESTART};
    sigaction(SIGTERM, &term, NULL);
    if (count > 1 && strcmp(arguments[1], "churn") == 0) {
        churn();
    } else if (count > 1 && strcmp(arguments[1], "signals") == 0) {
        alarms(on_alarm_for_long, 300);
        hot(NULL);
    } else {
        int threads = count > 2 ? atoi(arguments[2]) : 8;
        pthread_t others[64];
        for (int i = 1; i < threads && i < 64; i++)
            pthread_create(&others[i], NULL, hot, NULL);
        hot(NULL);
        for (int i = 1; i < threads && i < 64; i++)
            pthread_join(others[i], NULL);
    }
    printf("right %ld\n", calls);
    return 0;
}
