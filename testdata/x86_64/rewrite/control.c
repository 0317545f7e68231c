/* Control that goes where no call and no return leads: signals, longjmp, coroutines. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

static sigjmp_buf back;
static volatile int handled;
static volatile char *wall;

static void on_fault(int signal, siginfo_t *info, void *context) {
  (void)context;
  handled += info->si_addr == (void *)wall;
  siglongjmp(back, signal);
}
static void on_user(int signal) {
  handled += 100;
  if (signal == SIGUSR1) raise(SIGUSR2);
}

/* What ran of a function that is left in the middle of a block cannot be counted: this one is alone. */
__attribute__((noinline)) static int interrupted_read(volatile char *at) { return *at; }
__attribute__((noinline)) static int touch(volatile char *at, int depth) {
  return depth ? touch(at, depth - 1) + 1 : interrupted_read(at) + 1;
}

static void faults(void) {
  struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK};
  static char stack[65536];
  stack_t alternate = {.ss_sp = stack, .ss_size = sizeof stack};
  sigaltstack(&alternate, NULL);
  sigaction(SIGSEGV, &action, NULL);
  wall = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  volatile int caught = 0;
  for (volatile int i = 0; i < 5; i++) {
    int signal = sigsetjmp(back, 1);
    if (signal == 0) touch(wall, i);
    else caught += signal == SIGSEGV;
  }
  signal(SIGUSR1, on_user);
  signal(SIGUSR2, on_user);
  for (int i = 0; i < 3; i++) raise(SIGUSR1);
  printf("faults %d handled %d\n", caught, handled);
}

static jmp_buf place;
__attribute__((noinline)) static void descend(int depth) {
  if (depth == 0) longjmp(place, 7);
  descend(depth - 1);
  puts("never");
}
static void long_jumps(void) {
  volatile int total = 0;
  for (volatile int i = 0; i < 10; i++) {
    int value = setjmp(place);
    if (value == 0) descend(i);
    total += value;
  }
  printf("long jumps %d\n", total);
}

static ucontext_t home, workers[2];
static int produced;
static void worker(int number, int rounds) {
  for (int i = 0; i < rounds; i++) {
    produced = produced * 3 + number;
    swapcontext(&workers[number], i % 2 ? &home : &workers[1 - number]);
  }
}
static void coroutines(void) {
  static char stacks[2][65536];
  for (int i = 0; i < 2; i++) {
    getcontext(&workers[i]);
    workers[i].uc_stack.ss_sp = stacks[i];
    workers[i].uc_stack.ss_size = sizeof stacks[i];
    workers[i].uc_link = &home;
    makecontext(&workers[i], (void (*)(void))worker, 2, i, 6);
  }
  for (int i = 0; i < 5; i++) swapcontext(&home, &workers[i % 2]);
  printf("coroutines %d\n", produced);
}

static volatile sig_atomic_t ticks;
static sigjmp_buf tick_place;
static void on_tick(int signal) {
  (void)signal;
  ticks++;
  if (ticks % 2) siglongjmp(tick_place, 1);
}
/* Signals at any instruction: counts differ from run to run, but the program must survive them. */
static void interrupted(void) {
  signal(SIGALRM, on_tick);
  volatile unsigned spun = 0;
  sigsetjmp(tick_place, 1);
  ualarm(700, 0);
  while (ticks < 40) {
    int before = ticks;
    ualarm(700, 0);
    while (ticks == before) spun = spun * 5 + (spun & 1);
  }
  printf("interrupted %d\n", (int)ticks);
}

int main(int argc, char **argv) {
  (void)argv;
  faults();
  long_jumps();
  coroutines();
  if (argc > 1) interrupted();
  return 0;
}
