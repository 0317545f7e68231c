/* Switch statements in every shape that compilers turn into a jump table. */
#include "corpus.h"

#define CASE(n) case (n): DO(n); break;
#define CASES_5(n) CASE(n) CASE((n) + 1) CASE((n) + 2) CASE((n) + 3) CASE((n) + 4)
#define CASES_10(n) CASES_5(n) CASES_5((n) + 5)
#define CASES_50(n) CASES_10(n) CASES_10((n) + 10) CASES_10((n) + 20) CASES_10((n) + 30) CASES_10((n) + 40)

NOINLINE static void dense(int x) {
    switch (x) { CASES_10(0) default: DO(99); }
}

NOINLINE static void dense_from_100(unsigned x) {
    switch (x) { CASES_10(100) }
}

NOINLINE static void negative_base(int x) {
    switch (x) { CASES_5(-7) CASES_5(-2) default: DO(4); }
}

NOINLINE static void signed_char(signed char x) {
    switch (x) { CASES_10(-5) CASE(5) }
}

NOINLINE static void unsigned_char(unsigned char x) {
    switch (x) { CASES_10(40) CASES_5(50) default: DO(x); }
}

NOINLINE static void short_value(short x) {
    switch (x) { CASES_10(-300) CASES_5(-290) }
}

NOINLINE static void unsigned_short(unsigned short x) {
    switch (x) { CASES_10(60000) }
}

NOINLINE static void long_value(long x) {
    switch (x) { CASES_10(5) default: DO(-1); }
}

NOINLINE static void long_far_base(long x) {
    switch (x) { CASES_10(0x500000000L) }
}

NOINLINE static void unsigned_long(unsigned long x) {
    switch (x) { CASES_10(1) CASES_5(11) }
}

enum colour { RED, ORANGE, YELLOW, GREEN, BLUE, INDIGO, VIOLET };

NOINLINE static int all_of_an_enum(enum colour colour) {
    switch (colour) {
    case RED: return DO(10);
    case ORANGE: return DO(21);
    case YELLOW: return DO(32) + 1;
    case GREEN: return DO(43);
    case BLUE: return DO(54) - 1;
    case INDIGO: return DO(65);
    case VIOLET: return DO(76);
    }
    return 0;
}

NOINLINE static void holes(int x) {
    switch (x) { CASE(0) CASE(1) CASE(3) CASE(4) CASE(7) CASE(8) CASE(12) CASE(13) default: DO(50); }
}

/* Far apart: compilers make a tree of compares, with tables at the leaves. */
NOINLINE static void clusters(int x) {
    switch (x) { CASES_10(0) CASES_10(1000) CASES_10(20000) CASE(-44) CASE(777777) default: DO(51); }
}

NOINLINE static void sparse(int x) {
    switch (x) { CASE(1) CASE(1000) CASE(50000) CASE(-3) CASE(123456) CASE(99999999) default: DO(52); }
}

NOINLINE static void ranges(int x) {
    switch (x) {
    case 'a' ... 'f': DO(1); break;
    case 'g' ... 'k': DO(2); break;
    case 'A' ... 'F': DO(3); break;
    case '0' ... '9': DO(4); break;
    case '_': DO(5); break;
    case '-': DO(6); break;
    case '.': DO(7); break;
    case '+': DO(8); break;
    default: DO(9);
    }
}

NOINLINE static void shared_bodies(int x) {
    switch (x) {
    case 0: case 2: case 4: case 6: case 8: DO(0); break;
    case 1: case 3: case 5: DO(1); break;
    case 7: DO(7); /* fall through */
    case 9: DO(9); break;
    case 10: DO(10); break;
    default: DO(53);
    }
}

NOINLINE static void fall_through(int x) {
    switch (x) {
    case 9: DO(9); /* fall through */
    case 8: DO(8); /* fall through */
    case 7: DO(7); /* fall through */
    case 6: DO(6); /* fall through */
    case 5: DO(5); /* fall through */
    case 4: DO(4);
    }
}

/* No compare stands before these tables. */
NOINLINE static void masked(unsigned x) {
    switch (x & 7) {
    case 0: DO(0); break;
    case 1: DO(11); break;
    case 2: DO(22); break;
    case 3: DO(33); break;
    case 4: DO(44); break;
    case 5: DO(55); break;
    case 6: DO(66); break;
    case 7: DO(77); break;
    }
}

NOINLINE static void shifted(unsigned x) {
    switch (x >> 29) { CASES_5(0) CASE(5) CASE(6) CASE(7) }
}

NOINLINE static void of_a_remainder(unsigned x) {
    switch (x % 9) { CASES_5(0) CASE(5) CASE(6) CASE(7) default: DO(8); }
}

NOINLINE static void no_default(unsigned x) {
    switch (x) { CASES_5(0) CASES_5(5) default: __builtin_unreachable(); }
}

NOINLINE static void no_default_from_20(unsigned char x) {
    switch (x) { CASES_10(20) default: __builtin_unreachable(); }
}

struct node { int pad; int kind; long value; struct node *next; };

NOINLINE static void of_a_field(struct node *node) {
    switch (node->kind) {
    case 0: node->value += DO(1); break;
    case 1: node->value -= DO(2); break;
    case 2: node->value ^= DO(3); break;
    case 3: node->value *= DO(4); break;
    case 4: node->value = DO(5); break;
    case 5: node->value |= DO(6); break;
    default: node->value = 0;
    }
}

static volatile int global_kind;

NOINLINE static void of_a_global(void) {
    switch (global_kind) { CASES_10(0) }
}

NOINLINE static void in_a_loop(const unsigned char *text) {
    for (; *text; text++) {
        switch (*text) { CASES_10('0') CASE('+') CASE('-') CASE('*') CASE('/') CASE(' ') default: return; }
    }
}

NOINLINE static void two_in_a_loop(const char *text) {
    int mode = 0;
    for (; *text; text++) {
        switch (mode) {
        case 0: mode = *text == '(' ? 1 : 2; DO(1); break;
        case 1: mode = *text == ')' ? 3 : 1; DO(2); break;
        case 2: mode = *text & 3; DO(3); continue;
        case 3: mode = 4; DO(4); break;
        case 4: mode = 0; DO(5); break;
        }
        switch (*text) { CASES_10('a') CASES_5('k') }
    }
}

NOINLINE static void nested(int x, int y) {
    switch (x) {
    case 0: switch (y) { CASES_5(0) CASE(5) default: DO(60); } break;
    case 1: switch (y) { CASES_5(3) CASES_5(8) } break;
    case 2: DO(x); break;
    case 3: switch (y) { CASES_10(0) default: DO(61); } break;
    case 4: DO(y); break;
    case 5: DO(x + y); break;
    default: switch (y) { CASES_10(-10) }
    }
}

static const unsigned char class_of[64] = {
    0, 1, 2, 3, 4, 5, 6, 0, 1, 2, 3, 4, 5, 6, 0, 1, 2, 3, 4, 5, 6, 0, 1, 2, 3, 4, 5, 6, 0, 1, 2, 3,
    4, 5, 6, 0, 1, 2, 3, 4, 5, 6, 0, 1, 2, 3, 4, 5, 6, 0, 1, 2, 3, 4, 5, 6, 0, 1, 2, 3, 4, 5, 6, 0,
};

NOINLINE static void two_levels(unsigned x) {
    if (x >= sizeof class_of) return;
    switch (class_of[x]) { CASES_5(0) CASE(5) CASE(6) }
}

NOINLINE static void three_hundred(int x) {
    switch (x) { CASES_50(0) CASES_50(50) CASES_50(100) CASES_50(150) CASES_50(200) CASES_50(250) default: DO(54); }
}

/* The classic copy loop that jumps into its own middle. */
NOINLINE static void duff(int count) {
    int rounds = (count + 7) / 8;
    switch (count % 8) {
    case 0: do { DO(0);
    /* fall through */
    case 7: DO(7);
    /* fall through */
    case 6: DO(6);
    /* fall through */
    case 5: DO(5);
    /* fall through */
    case 4: DO(4);
    /* fall through */
    case 3: DO(3);
    /* fall through */
    case 2: DO(2);
    /* fall through */
    case 1: DO(1);
            } while (--rounds > 0);
    }
}

/* Many live values: the index is spilled and reloaded around the check. */
NOINLINE static long under_pressure(const long *v, int x) {
    long a = v[0], b = v[1], c = v[2], d = v[3], e = v[4], f = v[5], g = v[6], h = v[7], i = v[8], j = v[9];
    for (int k = 0; k < 3; k++) {
        switch (x + k) {
        case 0: a += b; DO(a); break;
        case 1: b += c; DO(b); break;
        case 2: c += d; DO(c); break;
        case 3: d += e; DO(d); break;
        case 4: e += f; DO(e); break;
        case 5: f += g; DO(f); break;
        case 6: g += h; DO(g); break;
        case 7: h += i; DO(h); break;
        case 8: i += j; DO(i); break;
        default: j += a; DO(j);
        }
        DO(a ^ b ^ c ^ d ^ e);
    }
    return a + b + c + d + e + f + g + h + i + j;
}

/* The masks allow more than the program uses, and a table stands right behind the other. */
NOINLINE static int masked_and_known(unsigned x, unsigned y) {
    int a = 0;
    switch (x >> 4 & 15) {
    case 0: a = DO(41); break;
    case 1: a = 1 - DO(a); break;
    case 2: a = DO(a) * 3; break;
    case 3: DO(y); break;
    case 4: a = DO(9) - a; break;
    case 5: a += 12; break;
    case 6: a ^= DO(x); break;
    case 7: a = 7 + DO(7); break;
    case 8: a = -DO(2); break;
    case 9: a = DO(a) << 2; break;
    default: __builtin_unreachable();
    }
    DO(a);
    switch (y & 31) {
    case 0: a += DO(1); break;
    case 1: a -= DO(21); break;
    case 2: a *= DO(3) & 7; break;
    case 3: a ^= DO(44); break;
    case 4: a = ~DO(a); break;
    case 5: DO(a), DO(x); break;
    case 6: a |= DO(6); break;
    default: __builtin_unreachable();
    }
    return DO(a);
}

/* Values in between do not occur. LLVM lets their entries lead to the end of the function. */
NOINLINE static int holes_that_nothing_uses(unsigned x) {
    switch (x) {
    case 0: return DO(11);
    case 2: return DO(22) * 2;
    case 3: return DO(33) + 3;
    case 6: return DO(66) - 6;
    case 7: return DO(77) ^ 7;
    case 9: return DO(99) | 9;
    default: __builtin_unreachable();
    }
}

NOINLINE static int calls_in_cases(int x) {
    switch (x) {
    case 0: dense(1); return 1;
    case 1: masked(x); return 2;
    case 2: holes(3); break;
    case 3: return all_of_an_enum(GREEN);
    case 4: duff(5); break;
    case 5: nested(x, x); return 7;
    case 6: ranges(x); break;
    default: return calls_in_cases(x & 3);
    }
    return x;
}

int main(void) {
    static const long values[10] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
    for (int x = -310; x < 310; x++) {
        dense(x), dense_from_100(x), negative_base(x), signed_char(x), unsigned_char(x), short_value(x);
        unsigned_short(60000 + x), long_value(x), long_far_base(0x500000000L + x), unsigned_long(x), holes(x);
        all_of_an_enum(x & 7), clusters(x), clusters(1000 + x), clusters(20000 + x), sparse(x), ranges(x);
        shared_bodies(x), fall_through(x), masked(x), shifted((unsigned)x << 24), of_a_remainder(x);
        no_default((unsigned)x % 10), no_default_from_20(20 + (unsigned)x % 10), two_levels(x), three_hundred(x);
        nested(x & 7, x & 15), under_pressure(values, x), duff(x & 31), calls_in_cases(x);
        struct node node = {0, x & 7, x, 0};
        of_a_field(&node);
        masked_and_known(((unsigned)x % 10) << 4, (unsigned)x % 7);
        holes_that_nothing_uses((const unsigned[]){0, 2, 3, 6, 7, 9}[(unsigned)x % 6]);
        global_kind = x & 15;
        of_a_global();
    }
    in_a_loop((const unsigned char *)"12 + 34*5 - 6/7");
    two_in_a_loop("(abc)defghijklmno(p)q");
    return report("switches");
}
