/* A second function named step. */
__attribute__((noinline, noclone)) static int step(int n)
{
    return n * n - 1;
}

int other_steps(int n)
{
    int count = 0;
    while (n < 10000) {
        n = step(n);
        count++;
    }
    return count;
}
