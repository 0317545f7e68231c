/* Jumps to labels that stand in an array of structures, found by a binary search, and next to it an array of functions of
   the same shape. And functions by names that libraries have for such that never return: these do return. */
#include <stdio.h>
#include <string.h>

typedef struct {
  const char *name;
  long (*call)(long);
} Call;

__attribute__((noinline)) static long calls(const char *name, long x);
static long twice(long x) { return 2 * x; }
static long again(long x) { return x > 100 ? x : calls("again", x + 60); }
static long minus(long x) { return -x; }

__attribute__((noinline)) static long calls(const char *name, long x) {
  static const Call table[] = {{"again", again}, {"minus", minus}, {"twice", twice}};
  for (unsigned i = 0; i < 3; i++)
    if (!strcmp(table[i].name, name)) return table[i].call(x);
  return 0;
}

__attribute__((noinline)) static long labels(const char *name, long x) {
  static const struct {
    const char *name;
    void *label;
  } table[] = {{"add", &&add}, {"halve", &&halve}, {"more", &&more}, {"negate", &&negate}, {"nothing", &&nothing}};
  unsigned low = 0, high = 5;
  while (low < high) {
    unsigned middle = (low + high) / 2;
    int order = strcmp(name, table[middle].name);
    if (!order) goto *table[middle].label;
    if (order < 0) high = middle;
    else low = middle + 1;
  }
  return -1000;
more: x += 7;
add: return x + 1;
halve: return x / 2;
negate: x = -x;
nothing: return x;
}

volatile int last;
__attribute__((noinline)) void xexit(int status) { last = status; }
__attribute__((noinline)) void err(int status, const char *text, ...) { last = status + (int)strlen(text); }
__attribute__((noinline)) int png_error(int x) { xexit(x); return last + 1; }

int main(void) {
  static const char *const names[] = {"add", "halve", "more", "negate", "nothing", "unknown", "again", "minus", "twice"};
  for (int i = 0; i < 9; i++) printf("%s %ld %ld\n", names[i], labels(names[i], i * 10), calls(names[i], i));
  xexit(3);
  printf("%d\n", last);
  err(4, "text");
  printf("%d %d\n", last, png_error(8));
  return 0;
}
