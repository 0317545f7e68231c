/* A payload: routines that a plan calls. Keeps a sum, and prints it.
 *   gcc -O2 -mgeneral-regs-only -fPIC -ffreestanding -c ledger.c
 * With -DVECTORS it uses registers that calls of it do not save. */
static unsigned long sum, calls;
static const char digits[] = "0123456789";

static void say(const char *text, unsigned long len) {
  long result;
  __asm__ volatile("syscall" : "=a"(result) : "0"(1), "D"(1), "S"(text), "d"(len) : "rcx", "r11", "memory");
}

void enter(unsigned long weight, unsigned long value) {
#ifdef VECTORS
  sum += (double)weight * value;
#else
  sum += weight * value;
#endif
  calls++;
}

void tell(void) {
  char text[24];
  int at = sizeof text;
  text[--at] = '\n';
  for (unsigned long rest = sum; at > 0; rest /= 10) {
    text[--at] = digits[rest % 10];
    if (rest < 10) break;
  }
  say(text + at, sizeof text - at);
}
