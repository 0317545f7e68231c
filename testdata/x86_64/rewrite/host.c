/* Uses library.c: linked with it, or loading, unloading and loading it again (-DLOAD, the path is the argument). */
#include <stdio.h>
#include <stdlib.h>
#ifdef LOAD
#include <dlfcn.h>
#else
extern int library_state, library_step(int), library_each(int, int (*)(int));
extern const char *library_name(unsigned);
#endif

static int seen;
static int callback(int x) { seen++; return x & 1 ? x : -x; }

int main(int argc, char **argv) {
  int rounds = 1;
#ifdef LOAD
  rounds = 3;
#endif
  for (int round = 0; round < rounds; round++) {
#ifdef LOAD
    void *library = dlopen(argc > 1 ? argv[1] : "./library.so", RTLD_NOW);
    if (!library) { puts(dlerror()); return 1; }
    int (*library_each)(int, int (*)(int)) = (int (*)(int, int (*)(int)))dlsym(library, "library_each");
    const char *(*library_name)(unsigned) = (const char *(*)(unsigned))dlsym(library, "library_name");
#else
    (void)argc; (void)argv;
    printf("step %d, state %d\n", library_step(3), library_state);
#endif
    printf("each %d\n", library_each(20, callback));
    for (unsigned i = 0; i < 12; i++) printf("%s ", library_name(i));
    printf("seen %d\n", seen);
#ifdef LOAD
    dlclose(library);
#endif
  }
  return 0;
}
