/* One statement a line: gcov's counts of lines are then counts of statements. */
#include <stdio.h>
#include <stdlib.h>

static int collatz(unsigned long n) {
  int steps = 0;
  while (n != 1) {
    if (n % 2)
      n = 3 * n + 1;
    else
      n /= 2;
    steps++;
  }
  return steps;
}

static int classify(int c) {
  switch (c) {
  case 'a':
    return 1;
  case 'b':
  case 'c':
    return 2;
  case 'd':
    return 3;
  case 'e':
    return 4;
  case 'z':
    return 5;
  default:
    return 0;
  }
}

static int fibonacci(int n) {
  if (n < 2)
    return n;
  return fibonacci(n - 1) + fibonacci(n - 2);
}

static void leave(int status) {
  if (status > 3)
    exit(status);
  puts("stays");
}

int main(void) {
  int total = 0;
  for (int i = 1; i < 30; i++)
    total += collatz(i);
  for (const char *c = "abracadabra, edit"; *c; c++)
    total += classify(*c);
  do {
    total -= 7;
  } while (total > 100);
  total += fibonacci(10);
  printf("%d\n", total);
  for (int i = 0; i < 10; i++)
    leave(i);
  puts("never");
  return 1;
}
