// A workload in C++: virtual calls over a tree of shapes, a map, and exceptions that unwind a few frames.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

struct Degenerate : std::runtime_error {
    int depth;
    Degenerate(int depth) : std::runtime_error("degenerate"), depth(depth) {}
};

struct Shape {
    virtual ~Shape() = default;
    virtual int64_t area(int depth) const = 0;
    virtual const char *name() const = 0;
};

struct Square final : Shape {
    int64_t side;
    explicit Square(int64_t side) : side(side) {}
    int64_t area(int depth) const override {
        if (side == 0) throw Degenerate(depth);
        return side * side;
    }
    const char *name() const override { return "square"; }
};

struct Rectangle final : Shape {
    int64_t width, height;
    Rectangle(int64_t width, int64_t height) : width(width), height(height) {}
    int64_t area(int) const override { return width * height; }
    const char *name() const override { return "rectangle"; }
};

struct Group final : Shape {
    std::vector<std::unique_ptr<Shape>> members;
    int64_t area(int depth) const override {
        int64_t sum = 0;
        for (const auto &member : members) sum += member->area(depth + 1);
        return sum;
    }
    const char *name() const override { return "group"; }
};

static uint32_t state = 2463534242u;
static uint32_t next() {
    state ^= state << 13;
    state ^= state >> 17;
    return state ^= state << 5;
}

static std::unique_ptr<Shape> build(int depth) {
    uint32_t choice = next();
    if (depth == 0 || choice % 8 == 0) {
        if (choice & 0x100) return std::make_unique<Rectangle>(choice % 11 + 1, choice % 7 + 1);
        return std::make_unique<Square>(choice % 60000 == 0 ? 0 : choice % 9 + 1);
    }
    auto group = std::make_unique<Group>();
    for (int i = 0; i < 4; i++) group->members.push_back(build(depth - 1));
    return group;
}

int main(int argc, char **argv) {
    int rounds = argc > 1 ? atoi(argv[1]) : 10;
    std::map<std::string, int64_t> totals;
    int caught = 0;
    for (int round = 0; round < rounds; round++) {
        auto shape = build(6);
        for (int again = 0; again < 12; again++) {
            try {
                totals[shape->name()] += shape->area(0);
                if (round % 16 == 0) throw Degenerate(round);
            } catch (const Degenerate &problem) {
                totals["degenerate"] += problem.depth;
                caught++;
            }
        }
    }
    for (const auto &[name, total] : totals) printf("%s %lld\n", name.c_str(), (long long)total);
    printf("caught %d\n", caught);
}
