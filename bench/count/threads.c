/* Four threads that spend their time in library.c. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

extern unsigned long sort_and_sum(unsigned *, unsigned), interpret(const unsigned char *, unsigned long);
enum { THREADS = 4, ITEMS = 1000 };
static int rounds;

static void *run(void *argument) {
  unsigned seed = (unsigned)(unsigned long)argument;
  static const unsigned char code[] = {0, 1, 2, 0, 1, 1, 2, 3, 0, 2, 4};
  unsigned long sum = 0;
  for (int round = 0; round < rounds; round++) {
    unsigned items[ITEMS];
    for (int i = 0; i < ITEMS; i++) items[i] = seed = seed * 1664525 + 1013904223;
    sum += sort_and_sum(items, ITEMS) + interpret(code, 2 * ITEMS);
  }
  return (void *)sum;
}

int main(int argc, char **argv) {
  rounds = argc > 1 ? atoi(argv[1]) : 1;
  pthread_t threads[THREADS];
  unsigned long sum = 0;
  for (unsigned long t = 0; t < THREADS; t++) pthread_create(&threads[t], NULL, run, (void *)t);
  for (int t = 0; t < THREADS; t++) {
    void *result;
    pthread_join(threads[t], &result);
    sum += (unsigned long)result;
  }
  printf("%lu\n", sum);
  return 0;
}
