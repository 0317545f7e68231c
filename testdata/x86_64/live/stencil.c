// A stencil over a grid with obstacles, in the manner of the SPEC benchmark lbm: each sweep reads one grid and writes
// another. Something to measure call by call.
//   gcc -O2 -o stencil stencil.c
// Argument: how many sweeps (0: for ever).
#include <stdio.h>
#include <stdlib.h>

enum { SIDE = 96, DIRECTIONS = 5, CELLS = SIDE * SIDE };

struct grid {
    double flow[DIRECTIONS][CELLS];
};

static unsigned char obstacle[CELLS];

__attribute__((noipa)) void stream_collide(const struct grid *from, struct grid *to) {
    const double relax = 0.6;
    for (int y = 1; y < SIDE - 1; y++) {
        for (int x = 1; x < SIDE - 1; x++) {
            int cell = y * SIDE + x;
            double here = from->flow[0][cell], left = from->flow[1][cell], right = from->flow[2][cell];
            double up = from->flow[3][cell], down = from->flow[4][cell];
            if (obstacle[cell]) {
                to->flow[0][cell] = here;
                to->flow[1][cell - 1] = right;
                to->flow[2][cell + 1] = left;
                to->flow[3][cell - SIDE] = down;
                to->flow[4][cell + SIDE] = up;
                continue;
            }
            double mean = (here + left + right + up + down) / DIRECTIONS;
            to->flow[0][cell] = here + relax * (mean - here);
            to->flow[1][cell - 1] = left + relax * (mean - left);
            to->flow[2][cell + 1] = right + relax * (mean - right);
            to->flow[3][cell - SIDE] = up + relax * (mean - up);
            to->flow[4][cell + SIDE] = down + relax * (mean - down);
        }
    }
}

int main(int count, char **arguments) {
    long sweeps = count > 1 ? atol(arguments[1]) : 0;
    static struct grid a, b;
    for (int cell = 0; cell < CELLS; cell++) {
        obstacle[cell] = cell % 37 == 0;
        for (int direction = 0; direction < DIRECTIONS; direction++)
            a.flow[direction][cell] = 1.0 + 0.01 * (cell % (direction + 3));
    }
    struct grid *from = &a, *to = &b;
    for (long sweep = 0; sweeps == 0 || sweep < sweeps; sweep++) {
        stream_collide(from, to);
        struct grid *other = from;
        from = to;
        to = other;
    }
    double sum = 0;
    for (int cell = 0; cell < CELLS; cell++)
        sum += from->flow[0][cell];
    printf("%.6f\n", sum);
    return 0;
}
