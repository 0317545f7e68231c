// The library of exceptions.cc.
#include <stdexcept>
#include <string>
struct Mark { ~Mark(); int value = 0; };
static int marks;
Mark::~Mark() { marks++; }
int library_throw(int what) {
  Mark mark;
  if (what == 0) throw std::runtime_error("library");
  if (what == 1) throw std::string("other");
  return marks;
}
int library_pass(int (*callback)(int), int x) {
  Mark mark;
  try {
    return callback(x) + 1;
  } catch (std::logic_error &) {
    mark.value++;
    throw std::runtime_error("passed on");
  }
}
