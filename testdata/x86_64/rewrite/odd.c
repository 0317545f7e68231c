/* Calls what is in odd.S, directly and through pointers. */
#include <stdio.h>
int in_carry(int), odd_flags(int), odd_middle(int), odd_whole(int), odd_table(unsigned), odd_strings(char *);
long odd_kept(long), odd_first(long), odd_second(long), odd_red(long, long), odd_here(void), odd_loop(long), odd_end(long);
long tiny_1(long), tiny_2(long), tiny_3(long), tiny_4(long), tiny_5(long);
static long (*volatile tiny[])(long) = {tiny_3, tiny_4, tiny_5};

int main(void) {
  printf("flags %d\n", odd_flags(25));
  printf("kept %ld\n", odd_kept(9));
  for (int i = 0; i < 6; i++) printf("middle %d whole %d\n", odd_middle(i), odd_whole(i));
  for (int i = 0; i < 10; i++) {
    tiny_1(i);
    tiny_2(i);
    printf("tiny %ld %ld %ld %ld\n", tiny_3(i), tiny_4(i), tiny_5(i), tiny[i % 3](i));
  }
  for (unsigned i = 0; i < 7; i++) printf("table %d\n", i == 2 ? 0 : odd_table(i));
  for (long i = 0; i < 5; i++) printf("first %ld second %ld\n", odd_first(i), odd_second(i));
  printf("red %ld here %ld\n", odd_red(~0l, 100), odd_here());
  char text[17] = "aaaaaaaaaaaaaaaa";
  int found = odd_strings(text);
  printf("strings %s %d\n", text, found);
  printf("loop %ld end %ld\n", odd_loop(100), odd_end(5));
  return 0;
}
