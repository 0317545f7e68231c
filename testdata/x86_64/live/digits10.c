// digits10 of redis-server, to be swapped in: how many decimal digits a number has.
// Its callers know which registers the original leaves alone (gcc's -fipa-ra):
//   gcc -O2 -c -fcall-saved-{rcx,rsi,rdi,r8,r9,r10,r11} -o digits10.o digits10.c
unsigned digits10(unsigned long long value) {
    unsigned digits = 1;
    while (value >= 10) {
        value /= 10;
        digits++;
    }
    return digits;
}
