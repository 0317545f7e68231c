/* Calls from code that is not edited to code that is. */
#include <stdio.h>

long held(long a, long b);

int main(void) {
    long sum = 0;
    for (long i = 0; i < 100; i++)
        sum += held(i, 3 * i + 1);
    printf("%ld\n", sum);
    return 0;
}
