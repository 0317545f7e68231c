// Virtual calls, multiple inheritance with thunks, member pointers, lambdas, and objects built before main.
#include <functional>
#include <memory>
#include <variant>
#include <vector>

#include "corpus.h"

namespace {

struct Shape {
    virtual ~Shape() { DO(1); }
    virtual long area() const = 0;
    virtual long edges() const { return DO(2) & 7; }
};
struct Named {
    virtual ~Named() { DO(3); }
    virtual const char *name() const = 0;
    virtual long length() const { return name()[0]; }
};
struct Square final : Shape, Named {
    long side;
    explicit Square(long side) : side(side) {}
    long area() const override { return DO(side * side); }
    const char *name() const override { return "square"; }
    long length() const override { return DO(side) & 15; }
};
struct Rectangle : Shape, Named {
    long width, height;
    Rectangle(long width, long height) : width(width), height(height) {}
    long area() const override { return DO(width * height); }
    long edges() const override { return 4; }
    const char *name() const override { return "rectangle"; }
};
struct Base { long base = 1; virtual long value() { return DO(base); } virtual ~Base() = default; };
struct Left : virtual Base { long value() override { return DO(base + 1); } };
struct Right : virtual Base { long right = 2; };
struct Bottom : Left, Right { long value() override { return DO(base + right); } };

NOINLINE long measure(const Shape &shape) { return shape.area() + shape.edges(); }
NOINLINE long spell(const Named &named) { return named.length(); }
NOINLINE long virtual_tail(Base *base) { return base->value(); }

struct Machine {
    long state = 0;
    long start(long x) { return state = DO(x); }
    long stop(long x) { return state = DO(-x); }
    virtual long pause(long x) { return state ^= DO(x); }
    virtual ~Machine() = default;
};
using Method = long (Machine::*)(long);
NOINLINE long by_member_pointer(Machine &machine, Method method, long x) { return (machine.*method)(x); }

using Value = std::variant<int, long, double, char, const char *, Square *>;
struct Visitor {
    long operator()(int v) const { return DO(v); }
    long operator()(long v) const { return DO(v + 1); }
    long operator()(double v) const { return DO(v * 2); }
    long operator()(char v) const { return DO(v + 3); }
    long operator()(const char *v) const { return DO(v[0]); }
    long operator()(Square *v) const { return v ? v->area() : DO(5); }
};
NOINLINE long visit_value(const Value &value) { return std::visit(Visitor{}, value); }

NOINLINE std::function<long(long)> adder(long n) {
    return [n](long x) { return DO(x + n); };
}

struct BeforeMain {
    std::vector<long> values;
    BeforeMain() { for (long i = 0; i < 5; i++) values.push_back(DO(i)); }
    ~BeforeMain() { DO(values.size()); }
};
BeforeMain before_main;

NOINLINE BeforeMain &local_static() {
    static BeforeMain only;
    return only;
}

template <int N> NOINLINE long instance(long x) {
    if constexpr (N == 0) {
        return DO(x);
    } else {
        switch (x % 7) {
        case 0: return DO(N);
        case 1: return DO(N + 1);
        case 2: return instance<N - 1>(x + 1);
        case 3: return DO(N + 3);
        case 4: return instance<N / 2>(x + 2);
        case 5: return DO(N + 5);
        default: return DO(N) + instance<N - 1>(x / 2);
        }
    }
}

} // namespace

int main() {
    std::vector<std::unique_ptr<Shape>> shapes;
    for (long i = 1; i < 6; i++) {
        shapes.push_back(std::make_unique<Square>(i));
        shapes.push_back(std::make_unique<Rectangle>(i, i + 1));
    }
    Bottom bottom;
    Right right;
    Machine machine;
    Square square(3);
    const Method methods[] = {&Machine::start, &Machine::stop, &Machine::pause};
    const Value values[] = {1, 2L, 3.5, 'c', "text", &square};
    auto add = adder(4);
    for (long i = 0; i < 60; i++) {
        const auto &shape = shapes[static_cast<size_t>(i) % shapes.size()];
        DO(measure(*shape));
        if (auto *named = dynamic_cast<Named *>(shape.get())) DO(spell(*named));
        DO(virtual_tail(i & 1 ? static_cast<Base *>(&bottom) : &right));
        DO(by_member_pointer(machine, methods[i % 3], i));
        DO(visit_value(values[i % 6]));
        DO(add(i));
        DO(instance<40>(i));
        DO(local_static().values.size() + before_main.values.size());
    }
    return report("virtuals");
}
