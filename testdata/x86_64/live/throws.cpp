// Threads in which exceptions pass through functions all the time. It checks every result, and tells on SIGTERM how it
// went.
//   g++ -O2 -pthread -o throws throws.cpp
// Argument: how many threads.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <thread>
#include <vector>
static volatile sig_atomic_t stop;
static long calls;
struct Odd { long value; };
struct Guard { long *count; ~Guard() { ++*count; } };
__attribute__((noipa)) long leaf(long x) {
    if (x % 7 == 3) throw Odd{x};
    return x * 2;
}
__attribute__((noipa)) long indirect(long (*f)(long), long x) { return f(x) + 1; }
// Calls, a handler of its own, a destructor that an exception runs, a loop, a switch.
__attribute__((noipa)) long middle(long x, long *left) {
    Guard guard{left};
    long sum = 0;
    for (long i = 0; i < 3; i++) {
        try {
            switch (x % 5) {
            case 0: sum += leaf(x + i); break;
            case 1: sum += indirect(leaf, x + i); break;
            case 2: sum -= leaf(x); break;
            case 3: sum += leaf(x * 2) + leaf(x); break;
            default: sum ^= indirect(leaf, i);
            }
        } catch (const Odd &odd) {
            if (odd.value % 2) throw;
            sum += odd.value;
        }
    }
    return sum;
}
__attribute__((noipa)) long outer(long x, long *left) {
    try { return middle(x, left); } catch (const Odd &odd) { return -odd.value; }
}
static long expected[1000];
static void run() {
    while (!stop) {
        long left = 0;
        for (long x = 0; x < 1000; x++)
            if (outer(x, &left) != expected[x]) { puts("wrong"); fflush(stdout); _Exit(1); }
        if (left != 1000) { puts("wrong guards"); fflush(stdout); _Exit(1); }
        __atomic_add_fetch(&calls, 1000, __ATOMIC_RELAXED);
    }
}
static void on_term(int) { stop = 1; }
int main(int count, char **arguments) {
    signal(SIGTERM, on_term);
    long left = 0;
    for (long x = 0; x < 1000; x++) expected[x] = outer(x, &left);
    std::vector<std::thread> threads;
    for (int i = 1; i < (count > 1 ? atoi(arguments[1]) : 1); i++) threads.emplace_back(run);
    run();
    for (auto &thread : threads) thread.join();
    printf("right %ld\n", calls);
}
