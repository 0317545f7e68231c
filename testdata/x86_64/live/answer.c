// Prints what a function answers, again and again, so that one sees what was changed on the way in or out.
//   gcc -O2 -o answer answer.c
// Without a change each line is 45: the sum of what is below ten.
#include <stdio.h>
#include <unistd.h>

__attribute__((noipa)) long answer(long below) {
    volatile long sum = 0;
    for (long i = 0; i < below; i++)
        sum += i;
    return sum;
}

int main(void) {
    for (;;) {
        printf("%ld\n", answer(10));
        fflush(stdout);
        usleep(1000);
    }
}
