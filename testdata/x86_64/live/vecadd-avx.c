// vecadd of vecadd-sse.c for AVX2, to be swapped in while the program runs:
//   gcc -O3 -mavx2 -fno-asynchronous-unwind-tables -c -o vecadd-avx.o vecadd-avx.c
void vecadd(double *sum, const double *a, const double *b, long length) {
    for (long i = 0; i < length; i++)
        sum[i] = a[i] + b[i];
    __asm__ volatile("" ::: "memory");
}
