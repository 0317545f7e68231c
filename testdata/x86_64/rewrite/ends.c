/* The ways in which a program ends. The argument says which; `work` runs a thousand times before. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

volatile unsigned total;
static volatile int zero;
__attribute__((noinline)) void work(void) { total += 3; }

/* What ran of a function that ends in the middle of a block cannot be counted: these are alone. */
__attribute__((noinline)) static void interrupted_write(void) { *(volatile int *)8 = 1; }
__attribute__((noinline)) static void interrupted_division(void) { total = (int)total / zero; }

static void last(void) { printf("the end, %u\n", total); fflush(stdout); }

__attribute__((noinline)) static void end(const char *how, int depth) {
  if (depth > 0) {
    end(how, depth - 1);
    total++;
    return;
  }
  if (!strcmp(how, "exit")) exit(3);
  if (!strcmp(how, "_exit")) _exit(4);
  if (!strcmp(how, "quick_exit")) quick_exit(5);
  if (!strcmp(how, "abort")) abort();
  if (!strcmp(how, "trap")) __builtin_trap();
  if (!strcmp(how, "fault")) interrupted_write();
  if (!strcmp(how, "divide")) interrupted_division();
  if (!strcmp(how, "kill")) kill(getpid(), SIGKILL);
  if (!strcmp(how, "term")) raise(SIGTERM);
  if (!strcmp(how, "wait")) {
    puts("ready");
    fflush(stdout);
    for (;;) pause();
  }
}

int main(int argc, char **argv) {
  if (argc < 2) return 2;
  atexit(last);
  at_quick_exit(last);
  for (int i = 0; i < 1000; i++) work();
  end(argv[1], 20);
  return 0;
}
