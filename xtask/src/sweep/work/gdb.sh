cat > small.c <<'C'
#include <stdio.h>
struct pair { int a; const char *b; };
static int inner(struct pair *p, int depth) { return depth == 0 ? p->a : inner(p, depth - 1) + 1; }
int main(void) {
    struct pair p = {41, "text"};
    for (int i = 0; i < 3; i++) p.a += inner(&p, i);
    printf("%d %s\n", p.a, p.b);
    return p.a & 7;
}
C
gcc -g -O0 -o small small.c
gdb -nx -batch -ex 'set startup-with-shell off' -ex 'set width 0' \
    -ex 'break inner if depth == 0' -ex run -ex backtrace -ex 'info args' -ex 'print *p' -ex finish \
    -ex 'watch p.a' -ex continue -ex 'delete' -ex 'disassemble main' -ex 'ptype struct pair' -ex 'info line main' \
    -ex stepi -ex 'info registers rip' -ex 'python print(gdb.selected_frame().name())' -ex 'print $_siginfo' -ex continue \
    ./small 2>&1 | sed 's/process [0-9]*/process N/'
gdb -nx -batch -ex 'info functions' -ex 'list main' -ex 'print sizeof(struct pair)' -ex 'print nothing' ./small 2>&1 || echo "status $?"
