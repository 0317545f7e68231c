/* Loops of many kinds: steps up and down, of all widths, that wrap, with early ends, nested, entered in the middle,
   with counters in memory, with several paths through them. Everything they compute is printed. */
#include <stdint.h>
#include <stdio.h>

#define KEEP __attribute__((noinline))

static uint64_t seed = 88172645463325252ull;
static unsigned char bytes[4096];
static int numbers[512];
static volatile int in_memory;

KEEP static uint64_t next(void) {
    seed ^= seed << 13;
    seed ^= seed >> 7;
    return seed ^= seed << 17;
}

KEEP static uint64_t sum_up(const int *p, long n) {
    uint64_t sum = 0;
    for (long i = 0; i < n; i++) sum += p[i];
    return sum;
}

KEEP static uint64_t sum_down(const int *p, long n) {
    uint64_t sum = 0;
    while (n-- > 0) sum = sum * 3 + p[n];
    return sum;
}

KEEP static uint64_t stride(const unsigned char *p, long n, int by) {
    uint64_t sum = 0;
    for (long i = 0; i < n; i += 7) sum += p[i] ^ by;
    for (long i = n - 1; i >= 0; i -= 5) sum = (sum << 1) + p[i];
    return sum;
}

KEEP static unsigned narrow(unsigned char start, unsigned char end) {
    unsigned rounds = 0;
    for (unsigned char i = start; i != end; i++) rounds += bytes[i];
    return rounds;
}

KEEP static unsigned wraps(uint32_t start, uint32_t end) {
    unsigned rounds = 0;
    for (uint32_t i = start; i != end; i += 3) rounds += i;
    return rounds;
}

/* From just below 2^64 to just above 0. */
KEEP static uint64_t wraps_wide(uint64_t start, uint64_t end) {
    uint64_t sum = 1;
    for (uint64_t i = start; i != end; i++) sum = sum * 5 + i;
    return sum;
}

KEEP static long early(const unsigned char *p, long n, int what) {
    long found = -1;
    for (long i = 0; i < n; i++) {
        if (p[i] == what) return i;
        if (p[i] == 255) { found = -i; break; }
        if (p[i] & 1) continue;
        found++;
    }
    return found;
}

KEEP static uint64_t nested(int n) {
    uint64_t sum = 0;
    for (long i = 0; i < n; i++)
        for (long j = i; j < n; j += 2)
            for (long k = 0; k <= j; k++) sum += (i ^ j) + numbers[k];
    return sum;
}

KEEP static uint64_t both_ways(const int *p, long n) {
    uint64_t odd = 0, even = 0;
    for (const int *end = p + n; p != end; p++) {
        if (*p & 1) odd += *p;
        else if (*p & 2) even ^= *p;
        else odd ^= even;
    }
    return odd * 31 + even;
}

/* Entered in the middle: no header dominates it. */
KEEP static int tangled(int n, int where) {
    int sum = 0;
    if (where) goto inside;
    do {
        sum += n;
inside:
        sum ^= where;
        n--;
    } while (n > 0);
    return sum;
}

KEEP static int memory_counter(int n) {
    int sum = 0;
    for (in_memory = 0; in_memory < n; in_memory++) sum += in_memory;
    return sum;
}

KEEP static uint64_t conditional_step(const unsigned char *p, long n) {
    uint64_t kept = 0;
    for (long i = 0; i < n; i++)
        if (p[i] > 100) kept++;
    return kept;
}

KEEP static size_t length(const char *s) {
    const char *end = s;
    while (*end) end++;
    return end - s;
}

KEEP static uint64_t with_calls(int n) {
    uint64_t sum = 0;
    for (int i = 0; i < n; i++) sum += next() >> 60;
    return sum;
}

KEEP static uint64_t many_values(const int *p, long n) {
    uint64_t a = 1, b = 2, c = 3, d = 4, e = 5, f = 6, g = 7, h = 8;
    for (long i = 0; i < n; i++) {
        a += p[i]; b ^= a; c += b * 3; d ^= c >> 2; e += d; f ^= e << 1; g += f; h ^= g;
        if (h & 4) a ^= h;
    }
    return a ^ b ^ c ^ d ^ e ^ f ^ g ^ h;
}

KEEP static int through_table(const unsigned char *p, long n) {
    int state = 0, sum = 0;
    for (long i = 0; i < n; i++)
        switch (p[i] & 7) {
        case 0: state = 1; break;
        case 1: sum += state; break;
        case 2: sum ^= 3; state = 2; break;
        case 3: sum -= state; break;
        case 4: state ^= 5; break;
        case 5: sum += 7; break;
        case 6: if (sum > 1000) return sum; break;
        default: state++;
        }
    return sum;
}

KEEP static void scroll(unsigned char *p, long width, long height) {
    for (long y = 0; y + 1 < height; y++)
        for (long x = 0; x < width; x++) p[y * width + x] = p[(y + 1) * width + x] + 1;
}

KEEP static long only_entry(long n) {
    do n -= 3; while (n > 0);
    return n;
}

int main(void) {
    for (int i = 0; i < 4096; i++) bytes[i] = next();
    for (int i = 0; i < 512; i++) numbers[i] = next() >> 40;
    uint64_t sum = 0;
    for (int n = 0; n < 40; n++) {
        sum = sum * 7 + sum_up(numbers, n * 3) + sum_down(numbers, n) + stride(bytes, n * 11, n);
        sum = sum * 7 + narrow(250 - n, n * 5) + wraps(-3u * n, 3 * n) + wraps_wide(-(uint64_t)n, n * 2);
        sum = sum * 7 + early(bytes + n, 200, n * 9 & 255) + nested(n) + both_ways(numbers, n * 5);
        sum = sum * 7 + tangled(n, n & 1) + memory_counter(n) + conditional_step(bytes, n * 20);
        sum = sum * 7 + length("a string") + with_calls(n) + many_values(numbers, n * 4);
        sum = sum * 7 + through_table(bytes, n * 30) + only_entry(n * 4);
        scroll(bytes, 64, n + 1);
    }
    printf("%llx\n", (unsigned long long)sum);
    return 0;
}
