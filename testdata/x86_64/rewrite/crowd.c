/* Threads and processes that all use crowd_library.c: linked with it, or loaded while they run (-DLOAD). The number of
   threads, of calls of each, and of children that each thread makes are known. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef LOAD
#include <dlfcn.h>
static unsigned (*crowd_each)(unsigned, unsigned (*)(unsigned));
static pid_t (*crowd_fork)(void);
#else
extern unsigned crowd_each(unsigned, unsigned (*)(unsigned)), crowd_interpret(const unsigned char *, unsigned);
extern pid_t crowd_fork(void);
#endif

enum { THREADS = 8, CALLS = 200, EACH = 500, CHILDREN = 2 };
#ifdef LOAD
static unsigned interpret(void) { return 0; }
#else
static unsigned interpret(void) {
  static const unsigned char code[] = {0, 1, 0, 2, 0, 1, 1, 3, 4};
  return crowd_interpret(code, EACH);
}
#endif

static unsigned callback(unsigned x) { return x ^ 1; }

static unsigned work(void) {
  unsigned sum = 0;
  for (int i = 0; i < CALLS; i++) sum += crowd_each(EACH, callback) + interpret();
  return sum;
}

static void *run(void *unused) {
  unsigned sum = work();
  for (int i = 0; i < CHILDREN; i++) {
    pid_t pid = crowd_fork();
    if (pid == 0) _exit(work() == sum ? 0 : 1);
    int status;
    if (waitpid(pid, &status, 0) != pid || status != 0) puts("a child failed");
  }
  if (work() != sum) puts("another result");
  return unused;
}

int main(int argc, char **argv) {
#ifdef LOAD
  for (int i = 0; i < 2; i++) {
    void *library = dlopen(argc > 1 ? argv[1] : "./crowd_library.so", RTLD_NOW);
    if (!library) return puts(dlerror()), 1;
    crowd_each = (unsigned (*)(unsigned, unsigned (*)(unsigned)))dlsym(library, "crowd_each");
    crowd_fork = (pid_t(*)(void))dlsym(library, "crowd_fork");
#else
  (void)argc, (void)argv;
  for (int i = 0; i < 1; i++) {
#endif
    pthread_t threads[THREADS];
    for (int t = 0; t < THREADS; t++) pthread_create(&threads[t], NULL, run, NULL);
    for (int t = 0; t < THREADS; t++) pthread_join(threads[t], NULL);
#ifdef LOAD
    dlclose(library);
#endif
  }
  if (system("true") != 0) puts("no shell");
  puts("done");
  return 0;
}
