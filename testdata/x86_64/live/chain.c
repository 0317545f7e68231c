// A known call chain without frame pointers, and loops of known depth: what a profile must find.
//   gcc -O2 -o chain chain.c
// Arguments: how many rounds (0: for ever), and how many processes to fork.
#include <stdlib.h>
#include <unistd.h>

static volatile unsigned long result;

__attribute__((noipa)) unsigned long innermost(unsigned long n) {
    unsigned long sum = n;
    for (unsigned long i = 0; i < n; i++)
        for (unsigned long j = 0; j < 64; j++)
            sum = (sum ^ i) * 31 + j;
    return sum;
}

__attribute__((noipa)) unsigned long middle(unsigned long n) {
    unsigned long sum = innermost(n);
    return sum * 3 + innermost(n / 16);
}

__attribute__((noipa)) unsigned long outermost(unsigned long n) {
    return middle(n) + 1;
}

int main(int count, char **arguments) {
    long rounds = count > 1 ? atol(arguments[1]) : 0;
    int forks = count > 2 ? atoi(arguments[2]) : 0;
    for (int i = 0; i < forks; i++)
        if (fork() == 0)
            break;
    for (long round = 0; rounds == 0 || round < rounds; round++)
        result += outermost(1000);
    return 0;
}
