/* Goes to another directory; then new threads run, and a process when they have ended. */
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile unsigned total;

__attribute__((noinline)) void work(unsigned rounds) {
  for (unsigned i = 0; i < rounds; i++) total++;
}

static void *thread(void *rounds) {
  work((unsigned)(unsigned long)rounds);
  return NULL;
}

int main(void) {
  pthread_t threads[3];
  work(10);
  if (chdir("/")) return 1;
  for (unsigned long i = 0; i < 3; i++) pthread_create(&threads[i], NULL, thread, (void *)(i + 1));
  for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
  pid_t child = fork();
  if (child == 0) {
    work(10);
    _exit(0);
  }
  waitpid(child, NULL, 0);
  return 0;
}
