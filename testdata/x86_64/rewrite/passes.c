/* A handler passes an instruction that always traps. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <ucontext.h>

static volatile unsigned passed;

static void pass(int signal, siginfo_t *info, void *context) {
  (void)signal, (void)info;
  ((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP] += 2;
  passed++;
}

int main(void) {
  struct sigaction action = {.sa_sigaction = pass, .sa_flags = SA_SIGINFO};
  sigaction(SIGILL, &action, NULL);
  for (volatile int i = 0; i < 10; i++) __asm__ volatile("ud2");
  printf("%u\n", passed);
  return 0;
}
