/* Handlers that take control away at any instruction. Every MARK counts how often it ran, in one instruction, and the
   program tells the address of each and what it counted. What is interrupted most may be in a library (-DLIBRARY), and the
   rest in a program for it (-DHOST). */
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

#define OWN __attribute__((visibility("hidden")))
extern const char __ehdr_start[] OWN;
extern const struct mark { const char *at; volatile unsigned long *count; } __start_marks[] OWN, __stop_marks[] OWN;
#define MARK(name)                                                                                                     \
  do {                                                                                                                 \
    static volatile unsigned long name;                                                                                \
    __asm__ volatile("1: incq %0\n"                                                                                    \
                     "  .pushsection marks, \"aw\"\n"                                                                  \
                     "  .quad 1b, %c1\n"                                                                               \
                     "  .popsection"                                                                                   \
                     : "+m"(name)                                                                                      \
                     : "i"(&name)                                                                                      \
                     : "cc");                                                                                          \
  } while (0)

static void tell(const char *whose) {
  for (const struct mark *mark = __start_marks; mark < __stop_marks; mark++)
    printf("%s%lx %lu\n", whose, (unsigned long)(mark->at - __ehdr_start), *mark->count);
  fflush(stdout);
}

#ifdef HOST
extern unsigned spin(unsigned);
extern void tell_library(void);
#else
static volatile unsigned sink;

__attribute__((noinline)) static unsigned leaf(unsigned x) {
  MARK(leaf_start);
  if (x & 4) {
    MARK(leaf_odd);
    x = x * 7 + 1;
  }
  MARK(leaf_end);
  return x ^ 5;
}

__attribute__((noinline)) unsigned spin(unsigned x) {
  for (;;) {
    MARK(loop);
    switch (x % 7) {
    case 0: MARK(zero); x += leaf(x); break;
    case 1: MARK(one); x ^= 0x55; break;
    case 2: MARK(two); x = leaf(x) * 3; break;
    case 3: MARK(three); x++; break;
    case 4: MARK(four); x -= 9; break;
    case 5: MARK(five); if (x & 8) x /= 3; MARK(five_more); break;
    default: MARK(six); x = x * 13 + 1;
    }
    MARK(again);
    sink = x;
    x = x * 1103515245 + 12345;
  }
}
void tell_library(void) {
#ifdef LIBRARY
  tell("library ");
#endif
}
#endif

#ifndef LIBRARY
static sigjmp_buf back;
static volatile sig_atomic_t ticks, returns;
static volatile char *wall;

static void on_signal(int signal, siginfo_t *info, void *context) {
  (void)info, (void)context;
  MARK(in_handler);
  ticks++;
  if (signal == SIGALRM && ticks % 3 == 0) {
    returns++;
    return;
  }
  siglongjmp(back, signal);
}
static void on_plain(int signal) {
  MARK(in_plain_handler);
  ticks++;
  siglongjmp(back, signal);
}

__attribute__((noinline)) static int touch(volatile char *at, int depth) {
  MARK(touch_start);
  if (depth > 0) {
    int found = touch(at, depth - 1);
    MARK(never);
    return found + 1;
  }
  MARK(before);
  int found = *at;
  MARK(behind);
  return found;
}

/* Ends in its handler, in the middle of the block that faults. */
static void on_last(int signal) {
  (void)signal;
  MARK(in_last_handler);
  tell("");
  tell_library();
  _exit(9);
}

int main(int argc, char **argv) {
  int wanted = argc > 1 ? atoi(argv[1]) : 100;
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  sigaction(SIGALRM, &action, NULL);
  sigaction(SIGSEGV, &action, NULL);
  signal(SIGBUS, on_plain);
  wall = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  for (volatile int i = 0; i < 5; i++)
    if (sigsetjmp(back, 1) == 0) touch(wall, i);
  if (sigsetjmp(back, 1) == 0) raise(SIGBUS);
  ticks = 0;
  struct itimerval often = {{0, 300}, {0, 300}};
  sigsetjmp(back, 1);
  if (ticks < wanted) {
    setitimer(ITIMER_REAL, &often, NULL);
    spin(ticks);
  }
  signal(SIGALRM, SIG_IGN);
  if (argc > 2) {
    signal(SIGSEGV, on_last);
    touch(wall, 3);
  }
  tell("");
  tell_library();
  return 0;
}
#endif
