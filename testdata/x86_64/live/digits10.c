// digits10 of redis-server, to be swapped in: how many decimal digits a number has.
//   gcc -O2 -c -o digits10.o digits10.c
unsigned digits10(unsigned long long value) {
    unsigned digits = 1;
    while (value >= 10) {
        value /= 10;
        digits++;
    }
    return digits;
}
