/* Threads that are ended in the middle of their work, by whatever ends them. Every MARK counts how often it ran, in one
   instruction, in a file that outlives the process. The program first tells where each MARK is.
     fatal FILE THREADS how [MICROSECONDS]
   THREADS work beside the first one, which ends the process in the named way. */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define OWN __attribute__((visibility("hidden")))
extern const char __ehdr_start[] OWN;
extern const struct mark { const char *at; } __start_marks[] OWN, __stop_marks[] OWN;
static unsigned long counts[512] __attribute__((aligned(4096)));
#define MARK(n)                                                                                                        \
  __asm__ volatile("1: lock incq %0\n"                                                                                 \
                   "  .pushsection marks, \"aw\"\n"                                                                    \
                   "  .quad 1b, %c1\n"                                                                                 \
                   "  .popsection"                                                                                     \
                   : "+m"(counts[n])                                                                                   \
                   : "i"(&counts[n])                                                                                   \
                   : "cc")

static volatile unsigned sink;

__attribute__((noinline, noclone)) static unsigned last(unsigned x) {
  MARK(0);
  return x * 7 + 1;
}

__attribute__((noinline, noclone)) static unsigned leaf(unsigned x) {
  MARK(1);
  if (x & 4) return last(x);
  MARK(2);
  sink = x;
  if (x & 8) return last(x + 1);
  MARK(3);
  return x ^ 5;
}

static unsigned (*volatile through)(unsigned) = leaf;

__attribute__((noinline)) static void *spin(void *seed) {
  unsigned x = (unsigned)(unsigned long)seed;
  for (;;) {
    MARK(4);
    switch (x % 7) {
    case 0: MARK(5); x += leaf(x); break;
    case 1: MARK(6); x ^= 0x55; break;
    case 2: MARK(7); x = through(x) * 3; break;
    case 3: MARK(8); x++; break;
    case 4: MARK(9); x -= 9; break;
    case 5: MARK(10); if (x & 8) x /= 3; MARK(11); break;
    default: MARK(12); x = x * 13 + 1;
    }
    while (x > 4000000000u) {
      MARK(13);
      x >>= 1;
    }
    MARK(14);
    sink = x;
    x = x * 1103515245 + 12345;
  }
}

__attribute__((noinline)) static int touch(volatile char *at, const char *how, int depth) {
  MARK(15);
  if (depth > 0) {
    int found = touch(at, how, depth - 1);
    MARK(16);
    return found + 1;
  }
  if (how[0] == 'u') {
    MARK(17);
    __asm__ volatile("ud2");
  }
  MARK(18);
  int found = *at;
  MARK(19);
  return found;
}

int main(int argc, char **argv) {
  if (argc < 4) return 2;
  int file = open(argv[1], O_RDWR | O_CREAT, 0600);
  if (file < 0 || ftruncate(file, sizeof counts) != 0) return 3;
  if (mmap(counts, sizeof counts, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) != counts) return 3;
  for (const struct mark *mark = __start_marks; mark < __stop_marks; mark += 2)
    printf("%lx %lu\n", (unsigned long)(mark->at - __ehdr_start), (unsigned long)(mark[1].at - (const char *)counts));
  fflush(stdout);
  MARK(20);
  int threads = atoi(argv[2]);
  const char *how = argv[3];
  long wait = argc > 4 ? atol(argv[4]) : 1;
  for (int i = 0; i < threads; i++) {
    pthread_t thread;
    pthread_create(&thread, NULL, spin, (void *)(i + 1L));
  }
  if (!strcmp(how, "kill")) {
    pid_t parent = getpid();
    if (fork() == 0) {
      MARK(21);
      usleep(wait);
      kill(parent, SIGKILL);
      _exit(0);
    }
    spin(NULL);
  }
  if (!strcmp(how, "alarm")) {
    struct itimerval once = {{0, 0}, {0, wait}};
    setitimer(ITIMER_REAL, &once, NULL);
    spin(NULL);
  }
  usleep(wait);
  if (!strcmp(how, "child")) {
    /* Another process ends the hard way, and the first one goes on. */
    pid_t child = fork();
    if (child == 0) spin(NULL);
    usleep(wait);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    MARK(22);
  }
  if (!strcmp(how, "abort")) abort();
  if (how[0] == 'f' || how[0] == 'u')
    touch(mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), how, 3);
  MARK(23);
  return 0;
}
