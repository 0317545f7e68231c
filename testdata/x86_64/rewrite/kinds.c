/* A bit of everything that compilers make of C: jump tables, computed goto, pointers to functions, tail calls,
   thread-local memory, IFUNC, constructors, the vDSO. Writes what it computed, and its exit status depends on it. */
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

static __thread unsigned own = 3;
__thread unsigned zeroed[8];
static int order[8], steps;

__attribute__((constructor)) static void before(void) { order[steps++] = 1; }
__attribute__((destructor)) static void after(void) { printf("after main: %d\n", steps); }
static void at_exit(void) { puts("at exit"); }

/* Dense: a jump table. */
__attribute__((noinline)) static unsigned dense(unsigned op, unsigned x) {
  switch (op) {
  case 0: return x + 1;
  case 1: return x * 3;
  case 2: return x ^ 0x55;
  case 3: return x << 2;
  case 4: own += x; return own;
  case 5: return x / 7;
  case 6: x += 2; /* falls through */
  case 7: return x - 1;
  case 9: return ~x;
  default: return 0;
  }
}

/* Sparse: a tree of comparisons. */
__attribute__((noinline)) static unsigned sparse(unsigned x) {
  switch (x) {
  case 1: case 10: case 100: return 1;
  case 3000: return 2;
  case 70000: return 3;
  case 0xffffffff: return 4;
  default: return x & 1 ? sparse(x - 1) : 5;
  }
}

/* An interpreter: every operation jumps on to the next through the same table. */
__attribute__((noinline)) static long interpret(const unsigned char *code) {
  static const void *const labels[] = {&&push, &&add, &&mul, &&dup, &&loop, &&end};
  long stack[64] = {0}, *top = stack, rounds = 0;
  const unsigned char *at = code;
#define NEXT goto *labels[*at++]
  NEXT;
push: *++top = *at++; NEXT;
add: top[-1] += *top; top--; NEXT;
mul: top[-1] *= *top; top--; NEXT;
dup: top[1] = *top; top++; NEXT;
loop: if (++rounds < *at++) at = code; NEXT;
end: return *top + rounds;
}

__attribute__((noinline)) static int even(unsigned n);
__attribute__((noinline)) static int odd(unsigned n) { return n == 0 ? 0 : even(n - 1); }
static int even(unsigned n) { return n == 0 ? 1 : odd(n - 1); }

static int rising(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
static int falling(const void *a, const void *b) { return rising(b, a); }
static int (*const orders[])(const void *, const void *) = {rising, falling};

static unsigned twice(unsigned x) { return 2 * x; }
static unsigned thrice(unsigned x) { return 3 * x; }
typedef unsigned (*scale)(unsigned);
#ifndef NO_IFUNC
static scale choose(void) { return sizeof(long) == 8 ? thrice : twice; }
unsigned scaled(unsigned) __attribute__((ifunc("choose")));
#else
static unsigned scaled(unsigned x) { return sizeof(long) == 8 ? thrice(x) : twice(x); }
#endif

__attribute__((noinline)) static long sum(int count, ...) {
  va_list list;
  long total = 0;
  va_start(list, count);
  for (int i = 0; i < count; i++) total += i % 2 ? (long)va_arg(list, double) : va_arg(list, int);
  va_end(list);
  return total;
}

struct big { long values[6]; };
__attribute__((noinline)) static struct big make(long x) {
  struct big big;
  for (int i = 0; i < 6; i++) big.values[i] = x * i;
  return big;
}

__attribute__((noinline)) static double mean(const double *values, int count) {
  double total = 0;
  for (int i = 0; i < count; i++) total += values[i];
  return count ? total / count : 0;
}

__attribute__((noinline)) static uint64_t wide(uint64_t a, uint64_t b) {
  unsigned __int128 product = (unsigned __int128)a * b + 12345;
  return (uint64_t)(product >> 64) ^ (uint64_t)product;
}

int main(int argc, char **argv) {
  atexit(at_exit);
  unsigned state = argc;
  for (unsigned i = 0; i < 200; i++) state = dense(i % 11, state + i) + sparse(i * 10);
  printf("switches %u, own %u\n", state, own);
  const unsigned char code[] = {0, 2, 0, 3, 2, 3, 1, 4, 20, 5};
  printf("interpreter %ld\n", interpret(code));
  printf("even %d odd %d\n", even(40), odd(40));
  for (unsigned i = 0; i < 2; i++) {
    int numbers[] = {5, 3, 9, -4, 0, 77, 12};
    qsort(numbers, 7, sizeof *numbers, orders[i]);
    printf("sorted %d %d %d\n", numbers[0], numbers[3], numbers[6]);
  }
  scale pointer = argc > 100 ? twice : scaled;
  printf("scaled %u %u\n", scaled(5), pointer(7));
  printf("sum %ld\n", sum(4, 1, 2.5, 3, 4.5));
  struct big big = make(7);
  const double values[] = {1.5, 2.5, 3.5};
  printf("big %ld mean %.2f wide %lu\n", big.values[5], mean(values, 3), (unsigned long)wide(~0ull, 0x123456789ull));
  struct timeval now;
  struct timespec precise;
  for (int i = 0; i < 3; i++) {
    if (gettimeofday(&now, NULL) || clock_gettime(CLOCK_MONOTONIC, &precise)) return 1;
    zeroed[i] += now.tv_sec > 1000 && precise.tv_nsec >= 0 && time(NULL) > 1000;
  }
  char text[64];
  snprintf(text, sizeof text, "%s-%zu-%d", strrchr("a/b", '/'), strlen("four"), order[0]);
  printf("%s clocks %u\n", text, zeroed[0] + zeroed[1] + zeroed[2]);
  return (int)(state % 100);
}
