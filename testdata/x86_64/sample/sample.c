/* A small program with one of everything that the reports show: nested loops, a jump table, a tail call, a call that
   does not return, a cold part, recursion, and a name that two functions have. It reads its standard input to the
   end, so that a test can look at it while it runs. */
#include <stdio.h>
#include <stdlib.h>

int other_steps(int n);
long spiral(long n);
int areas(int n);

#define KEPT __attribute__((noinline, noclone))

/* Two loops, one in the other. */
KEPT static void sort(int *v, int n)
{
    for (int i = n - 1; i > 0; i--)
        for (int j = 0; j < i; j++)
            if (v[j] > v[j + 1]) {
                int t = v[j];
                v[j] = v[j + 1];
                v[j + 1] = t;
            }
}

__attribute__((noreturn, noinline, cold)) static void fail(const char *what)
{
    fprintf(stderr, "sample: %s\n", what);
    exit(1);
}

/* A jump table, and a cold part: fail() is unlikely. */
KEPT int calculate(int op, int a, int b)
{
    switch (op) {
    case '+': return a + b;
    case '-': return a - b;
    case '*': return a * b;
    case '/':
        if (b == 0)
            fail("division by zero");
        return a / b;
    case '%':
        if (b == 0)
            fail("division by zero");
        return a % b;
    case '&': return a & b;
    case '.': return printf("%d\n", a);
    default: return 0;
    }
}

/* other.c has a function of the same name. */
KEPT static int step(int n)
{
    return n % 2 ? 3 * n + 1 : n / 2;
}

KEPT int steps(int n)
{
    int count = 0;
    while (n > 1) {
        n = step(n);
        count++;
    }
    return count;
}

KEPT int fibonacci(int n)
{
    return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

/* The call is in tail position: a jump. */
KEPT int twice(int n)
{
    return fibonacci(2 * n);
}

int main(void)
{
    int v[] = {5, 2, 9, 1}, sum = 0, c;
    sort(v, 4);
    while ((c = getchar()) != EOF)
        sum = calculate(c, sum, v[c & 3]);
    printf("%d %d %ld %d %d\n", sum, steps(27) + other_steps(3), spiral(5), areas(3), twice(4));
    return 0;
}
