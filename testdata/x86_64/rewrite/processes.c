/* Processes that are made, replaced and ended in all ways. `work` runs a known number of times in each. */
#define _GNU_SOURCE
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
static volatile unsigned total;

__attribute__((noinline)) void work(unsigned rounds) {
  for (unsigned i = 0; i < rounds; i++) total += i & 3 ? 1 : 2;
}
__attribute__((noinline)) void once(void) { total++; }

static int wait_for(pid_t child) {
  int status = 0;
  if (waitpid(child, &status, 0) != child) return -1;
  return WIFSIGNALED(status) ? 1000 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* Parent and children at once, and children of children. */
static void forks(void) {
  pid_t children[4];
  for (int i = 0; i < 4; i++) {
    children[i] = fork();
    if (children[i] == 0) {
      for (int j = 0; j < 1000; j++) once();
      if (i == 3) {
        pid_t grandchild = fork();
        if (grandchild == 0) {
          for (int j = 0; j < 500; j++) once();
          exit(9);
        }
        _exit(wait_for(grandchild));
      }
      if (i == 2) raise(SIGKILL);
      if (i == 1) abort();
      _exit(i + 1);
    }
    for (int j = 0; j < 1000; j++) once();
  }
  for (int i = 0; i < 4; i++) printf("child %d: %d\n", i, wait_for(children[i]));
}

static void execs(const char *self) {
  char *const arguments[] = {(char *)self, "leaf", NULL};
  pid_t child = vfork();
  if (child == 0) {
    execv(self, arguments);
    _exit(127);
  }
  printf("vfork and exec: %d\n", wait_for(child));
  child = vfork();
  if (child == 0) _exit(6);
  printf("vfork: %d\n", wait_for(child));
  if (posix_spawn(&child, self, NULL, NULL, arguments, environ)) exit(1);
  printf("spawn: %d\n", wait_for(child));
  fflush(stdout);
  if (system("exit 4") != 4 << 8) exit(1);
  FILE *pipe = popen("echo through a pipe", "r");
  char line[64] = "";
  if (!fgets(line, sizeof line, pipe)) exit(1);
  printf("%s", line);
  pclose(pipe);
}

int main(int argc, char **argv) {
  if (argc > 1) {
    work(10);
    exit(5);
  }
  setvbuf(stdout, NULL, _IONBF, 0);
  work(100);
  forks();
  execs(argv[0]);
  work(1);
  fflush(stdout);
  /* The last word is another image of the same program. */
  execl(argv[0], argv[0], "leaf", NULL);
  return 1;
}
