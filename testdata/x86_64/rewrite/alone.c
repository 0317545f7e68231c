/* A program that is not rewritten, with threads that use copies of crowd_library.c. Its arguments are what it does, as
   letters, and the libraries:
     o  every thread loads and unloads all libraries by itself, at the same time, and does everything a second time
     f  every thread makes a child, and both go on
     w  other memory is where counters are by default
     g  the program uses the gs register itself */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 8, CALLS = 200, EACH = 500, MOST = 8, SET_GS = 0x1001, GET_GS = 0x1004 };
typedef unsigned each_function(unsigned, unsigned (*)(unsigned));
typedef unsigned interpret_function(const unsigned char *, unsigned);
struct library {
  void *handle;
  each_function *each;
  interpret_function *interpret;
};

static const unsigned char codes[2][9] = {{0, 1, 0, 2, 0, 1, 1, 3, 4}, {1, 2, 1, 2, 0, 0, 3, 4}};
static const char *does;
static char **names;
static pthread_barrier_t barrier;

static int does_it(char letter) { return strchr(does, letter) != NULL; }
static unsigned callback(unsigned x) { return x ^ 1; }

static void load(struct library *libraries) {
  for (int i = 0; names[i]; i++) {
    libraries[i].handle = dlopen(names[i], RTLD_NOW);
    if (!libraries[i].handle) puts(dlerror()), exit(1);
    libraries[i].each = (each_function *)dlsym(libraries[i].handle, "crowd_each");
    libraries[i].interpret = (interpret_function *)dlsym(libraries[i].handle, "crowd_interpret");
  }
}

static void unload(struct library *libraries) {
  for (int i = 0; names[i]; i++) dlclose(libraries[i].handle);
}

static void work(const struct library *libraries, long number) {
  for (int call = 0; call < CALLS; call++)
    for (int i = 0; names[i]; i++) {
      libraries[i].each(EACH, callback);
      libraries[i].interpret(codes[number % 2], EACH);
    }
}

static struct library shared[MOST];
static unsigned long own_gs[2] = {1, 2};

static void *run(void *argument) {
  long number = (long)argument;
  struct library own[MOST], *libraries = shared;
  if (does_it('g')) syscall(SYS_arch_prctl, SET_GS, own_gs);
  for (int time = 0; time < (does_it('o') ? 2 : 1); time++) {
    pthread_barrier_wait(&barrier);
    if (does_it('o')) load(libraries = own);
    work(libraries, number);
    if (does_it('f')) {
      pid_t pid = fork();
      work(libraries, number);
      if (pid == 0) _exit(0);
      int status;
      if (waitpid(pid, &status, 0) != pid || status != 0) puts("a child failed");
    }
    if (does_it('o')) unload(own);
  }
  unsigned long gs = 0;
  syscall(SYS_arch_prctl, GET_GS, &gs);
  if (does_it('g') && gs != (unsigned long)own_gs) puts("another gs");
  return NULL;
}

int main(int argc, char **argv) {
  if (argc < 3 || argc > MOST + 1) return 1;
  does = argv[1], names = argv + 2;
  if (does_it('w')) {
    void *window = (void *)0x70000000;
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
    if (mmap(window, 4096, PROT_NONE, flags, -1, 0) != window) puts("no memory");
  }
  if (does_it('g')) syscall(SYS_arch_prctl, SET_GS, own_gs);
  if (!does_it('o')) load(shared);
  pthread_t threads[THREADS];
  pthread_barrier_init(&barrier, NULL, THREADS);
  for (long t = 0; t < THREADS; t++) pthread_create(&threads[t], NULL, run, (void *)t);
  for (int t = 0; t < THREADS; t++) pthread_join(threads[t], NULL);
  if (own_gs[0] != 1 || own_gs[1] != 2) puts("memory has changed");
  puts("done");
  return 0;
}
