/* A library with state, thread-local memory, callbacks, constructors, and calls to its own exported functions. */
#include <stdio.h>
#include <stdlib.h>

static __thread int own = 5;
int library_state = 40;
static const char *const names[] = {"zero", "one", "two", "three"};

__attribute__((constructor)) static void begin(void) { library_state++; }
__attribute__((destructor)) static void end(void) { printf("library ends, %d\n", library_state); }

int library_step(int x) { return x * 2 + ++own; }
const char *library_name(unsigned i) {
  switch (i % 8) {
  case 0: return names[0];
  case 1: return names[1];
  case 2: return names[2];
  case 3: return names[3];
  case 4: return "four";
  case 5: library_state += 10; return "five";
  case 6: return "six";
  default: return "many";
  }
}
int library_each(int count, int (*callback)(int)) {
  int total = 0;
  for (int i = 0; i < count; i++) total += callback(library_step(i));
  return total;
}
