/* What threads.c calls: a sort with a branch for nearly every comparison, and an interpreter. */

static void sink(unsigned *heap, unsigned at, unsigned count) {
  for (unsigned child; (child = 2 * at + 1) < count; at = child) {
    if (child + 1 < count && heap[child] < heap[child + 1]) child++;
    if (heap[at] >= heap[child]) return;
    unsigned larger = heap[child];
    heap[child] = heap[at], heap[at] = larger;
  }
}

unsigned long sort_and_sum(unsigned *items, unsigned count) {
  unsigned long sum = 0;
  for (unsigned i = count / 2; i-- > 0;) sink(items, i, count);
  while (count-- > 0) {
    unsigned largest = items[0];
    items[0] = items[count], items[count] = largest;
    sink(items, 0, count);
    sum = sum * 31 + largest;
  }
  return sum;
}

/* Each operation jumps to the next by itself. */
unsigned long interpret(const unsigned char *code, unsigned long rounds) {
  static void *const to[] = {&&add, &&flip, &&turn, &&skip, &&again};
  const unsigned char *at = code;
  unsigned long x = 1;
  goto *to[*at++];
add:
  x += rounds;
  goto *to[*at++];
flip:
  x ^= x << 13;
  goto *to[*at++];
turn:
  x = x >> 7 | x << 57;
  goto *to[*at++];
skip:
  at += x & 1;
  goto *to[*at++];
again:
  if (--rounds == 0) return x;
  at = code;
  goto *to[*at++];
}
