// small of torture.c in another way, to be swapped in:
//   gcc -O2 -c -o small.o small.c
long small(long x) {
    return (x << 2) - x - -1;
}
