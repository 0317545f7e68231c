// Exceptions through frames of all sorts, in this program and across the border of thrower.cc's library.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

int library_throw(int what);
int library_pass(int (*callback)(int), int x);

static int live, destroyed;
struct Guard {
  Guard() { live++; }
  ~Guard() { live--; destroyed++; }
};

struct Base { virtual ~Base() {} virtual int run(int x) = 0; };
struct Left : Base { int run(int x) override { Guard g; if (x % 3 == 0) throw x; return x; } };
struct Right : Base { int run(int x) override { Guard g; if (x % 5 == 0) throw std::out_of_range("right"); return -x; } };

__attribute__((noinline)) static int nested(int depth) {
  Guard g;
  if (depth == 0) throw std::string("deep");
  try {
    return nested(depth - 1) + 1;
  } catch (const char *) {
    return -1;
  } catch (std::string &s) {
    s += '.';
    if (depth % 2) throw;
    throw std::string(s + "new");
  }
}

__attribute__((noinline)) static int callback(int x) {
  Guard g;
  if (x > 3) throw std::length_error("callback");
  return x * 2;
}

__attribute__((noinline)) static int anything(int x) {
  try {
    Guard g;
    switch (x) {
    case 0: throw 1;
    case 1: throw 2.5;
    case 2: throw std::unique_ptr<int>(new int(9));
    case 3: return library_throw(0);
    case 4: return library_throw(1);
    case 5: return library_pass(callback, 5);
    case 6: return library_pass(callback, 2);
    }
    return 0;
  } catch (int i) {
    return 10 + i;
  } catch (double d) {
    return 20 + (int)d;
  } catch (std::runtime_error &e) {
    return 30 + (int)std::strlen(e.what());
  } catch (...) {
    return 40;
  }
}

__attribute__((noinline)) static int in_constructor(int x) {
  struct Member { Guard g; int v; explicit Member(int v) : v(v) { if (v == 2) throw v; } };
  struct Whole { Member a, b, c; explicit Whole(int x) : a(x), b(x + 1), c(x + 2) {} };
  try { Whole w(x); return w.a.v; } catch (int i) { return -i; }
}

// What an optimizer cannot see through.
__attribute__((noinline)) static void function_try(int x) try { if (x) throw x; } catch (int i) { throw i + 1; }

__attribute__((noinline)) static void promised(int x) noexcept { if (x) throw x; }
#ifdef SPECIFICATIONS
__attribute__((noinline)) static void specified(int x) throw(int) { if (x == 1) throw 1; if (x == 2) throw 2.0; }
#endif

int main(int argc, char **argv) {
  std::unique_ptr<Base> objects[] = {std::make_unique<Left>(), std::make_unique<Right>()};
  int total = 0, caught = 0;
  for (int i = 0; i < 40; i++) {
    try { total += objects[i % 2]->run(i); }
    catch (int x) { caught += 1; total += x; }
    catch (const std::exception &e) { caught += 100; total += e.what()[0]; }
  }
  std::printf("virtual %d %d\n", total, caught);
  for (int depth = 0; depth < 6; depth++) {
    try { nested(depth); } catch (const std::string &s) { std::printf("nested %s\n", s.c_str()); }
  }
  for (int i = 0; i < 8; i++) std::printf("%d ", anything(i));
  for (int i = 0; i < 4; i++) std::printf("%d ", in_constructor(i));
  try { function_try(4); } catch (int i) { std::printf("function try %d\n", i); }
  std::exception_ptr kept;
  try { std::vector<int>().at(7); } catch (...) { kept = std::current_exception(); }
  try { std::rethrow_exception(kept); } catch (std::out_of_range &) { std::puts("kept"); }
  std::printf("live %d destroyed %d\n", live, destroyed);
  std::fflush(stdout);
#ifdef SPECIFICATIONS
  try { specified(1); } catch (int) { std::puts("specified"); }
  std::set_unexpected([] { std::puts("unexpected"); throw 3; });
  try { specified(2); } catch (int i) { std::printf("replaced %d\n", i); }
#endif
  if (argc > 1 && !std::strcmp(argv[1], "terminate")) {
    std::set_terminate([] { std::puts("terminate"); std::fflush(stdout); std::_Exit(9); });
    promised(1);
  }
  if (argc > 1 && !std::strcmp(argv[1], "uncaught")) throw std::runtime_error("nobody catches this");
}
