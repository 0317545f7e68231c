/* Finds a library by $ORIGIN, and a file beside the folder of its own executable. */
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef LIBRARY
int near(void) { return 7; }
#else
int near(void);

int main(void) {
  char self[PATH_MAX], path[2 * PATH_MAX], word[64] = "";
  ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
  if (length < 0) return 1;
  self[length] = 0;
  snprintf(path, sizeof path, "%s", self);
  printf("%d from the library, runs as %s\n", near(), basename(path));
  snprintf(path, sizeof path, "%s/../share/word", dirname(self));
  FILE *file = fopen(path, "r");
  if (!file || !fgets(word, sizeof word, file)) return 2;
  fclose(file);
  file = fopen("/proc/self/comm", "r");
  if (!file || !fgets(path, sizeof path, file)) return 3;
  fclose(file);
  printf("the word is %s, the process %s", word, path);
  return 0;
}
#endif
