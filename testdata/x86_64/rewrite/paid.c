/* Calls whose arguments a payload adds up; registers and flags must not notice. */
#include <stdio.h>

__attribute__((noipa)) double pay(unsigned long value, double rate) { return value * rate; }

__attribute__((noipa)) void done(void) {
  fflush(stdout);
  __asm__ volatile("");
}

int main(void) {
  double total = 0;
  for (unsigned long i = 1; i <= 100; i++) total += pay(i, 0.5);
  printf("%.1f\n", total);
  done();
  return 0;
}
