/* Threads that end in several ways, threads in a child process, and one that is killed with the program. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 4, ROUNDS = 20000 };
static __thread volatile unsigned own;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned long total;

__attribute__((noinline)) void work(unsigned i) { own += i & 1 ? 2 : 1; }

static void *run(void *argument) {
  for (unsigned i = 0; i < ROUNDS; i++) work(i);
  pthread_mutex_lock(&lock);
  total += own;
  pthread_mutex_unlock(&lock);
  if (argument) pthread_exit(argument);
  return NULL;
}

static void *wait_forever(void *argument) {
  pthread_barrier_wait(argument);
  for (;;) pause();
}

static void together(void) {
  pthread_t threads[THREADS];
  for (long i = 0; i < THREADS; i++)
    if (pthread_create(&threads[i], NULL, run, (void *)(i % 2))) abort();
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
}

int main(void) {
  setvbuf(stdout, NULL, _IONBF, 0);
  /* More threads than ever run at once: what one leaves the next may use. */
  for (int i = 0; i < 5; i++) together();
  printf("total %lu\n", total);
  pid_t child = fork();
  if (child == 0) {
    together();
    printf("child %lu\n", total);
    _exit(3);
  }
  int status;
  waitpid(child, &status, 0);
  printf("child ended %d\n", WEXITSTATUS(status));
  pthread_t waiting;
  pthread_barrier_t barrier;
  pthread_barrier_init(&barrier, NULL, 2);
  pthread_create(&waiting, NULL, wait_forever, &barrier);
  pthread_barrier_wait(&barrier);
  return 0;
}
