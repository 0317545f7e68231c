// Loops, branches and calls whose numbers are known: what counting must find.
//   gcc -O1 -g -o tally tally.c
// Prints its own name and what it reads. Argument: the exit status, or "abort".
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static volatile int sink;

__attribute__((noipa)) void step(int i) {
    sink = i;
}

__attribute__((noipa)) void odd(int i) {
    sink = -i;
}

__attribute__((noipa)) void work(int trips) {
    for (int i = 0; i < trips; i++) {
        step(i);
        if (i % 2)
            odd(i);
    }
}

int main(int count, char **arguments) {
    for (int i = 0; i < 7; i++)
        work(10);
    printf("%s\n", arguments[0]);
    for (int c = getchar(); c != EOF; c = getchar())
        putchar(c);
    fflush(stdout);
    if (count > 1 && strcmp(arguments[1], "abort") == 0)
        abort();
    return count > 1 ? atoi(arguments[1]) : 0;
}
