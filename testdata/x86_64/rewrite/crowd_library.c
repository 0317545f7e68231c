/* What crowd.c calls from many threads and processes at once. */
#include <stdlib.h>
#include <sys/types.h>
#include <unistd.h>

unsigned crowd_step(unsigned x) { return x & 1 ? x * 3 + 1 : x / 2; }

unsigned crowd_each(unsigned count, unsigned (*callback)(unsigned)) {
  unsigned total = 0;
  for (unsigned i = 0; i < count; i++) total += callback(crowd_step(i));
  return total;
}

/* Jumps from many places to the same: compilers merge them. */
unsigned crowd_interpret(const unsigned char *code, unsigned rounds) {
  static void *const to[] = {&&add, &&twice, &&flip, &&again, &&end};
  const unsigned char *at = code;
  unsigned x = 1;
  goto *to[*at++];
add:
  x += 7;
  goto *to[*at++];
twice:
  x *= 2;
  goto *to[*at++];
flip:
  x = ~x;
  goto *to[*at++];
again:
  if (--rounds > 0) at = code;
  goto *to[*at++];
end:
  return x;
}

/* Returns to its caller in both processes. */
pid_t crowd_fork(void) { return fork(); }
