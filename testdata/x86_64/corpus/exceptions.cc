// Exceptions: landing pads, cleanups, rethrows, filters, and throwing parts that compilers move away.
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "corpus.h"

namespace {

struct Guard {
    long id;
    explicit Guard(long id) : id(id) { DO(id); }
    NOINLINE ~Guard() { DO(-id); }
};

struct Error : std::runtime_error {
    int code;
    Error(int code, const char *what) : std::runtime_error(what), code(code) {}
};
struct Derived : Error { using Error::Error; };

NOINLINE long may_throw(int x) {
    switch (x % 9) {
    case 0: throw x;
    case 1: throw Error(x, "error");
    case 2: throw Derived(x, "derived");
    case 3: throw std::out_of_range("range");
    case 4: throw "text";
    case 5: throw std::string("string");
    case 6: return DO(x);
    case 7: return DO(x + 1);
    default: return 0;
    }
}

[[noreturn]] NOINLINE void always_throws(int x) { throw Derived(x, "always"); }

NOINLINE long with_cleanup(int x) {
    Guard a(1);
    long first = may_throw(x);
    Guard b(2);
    std::string text(static_cast<size_t>(x % 40), 'x');
    long second = may_throw(x + 1);
    Guard c(3);
    return first + second + static_cast<long>(text.size());
}

NOINLINE long catches_many(int x) {
    try {
        return with_cleanup(x);
    } catch (int value) {
        return DO(value);
    } catch (const Derived &e) {
        return DO(e.code + 1);
    } catch (const Error &e) {
        return DO(e.code + 2);
    } catch (const std::exception &e) {
        return DO(e.what()[0]);
    } catch (const char *text) {
        return DO(text[0]);
    } catch (...) {
        return DO(77);
    }
}

NOINLINE long rethrows(int x) {
    try {
        Guard a(4);
        return with_cleanup(x);
    } catch (...) {
        Guard b(5);
        throw;
    }
}

NOINLINE long translates(int x) {
    try {
        return rethrows(x);
    } catch (const std::exception &) {
        std::throw_with_nested(std::logic_error("nested"));
    }
}

NOINLINE long nested_tries(int x) {
    long sum = 0;
    for (int i = 0; i < 4; i++) {
        try {
            Guard outer(6);
            try {
                sum += translates(x + i);
            } catch (int value) {
                sum += value;
                if (value & 1) throw Error(value, "odd");
            }
        } catch (const std::logic_error &) {
            sum -= 1;
            continue;
        } catch (...) {
            sum += 2;
        }
    }
    return sum;
}

NOINLINE long quiet(int x) noexcept {
    Guard a(7);
    return x < 0 ? may_throw(6) : DO(x);
}

struct Member {
    std::unique_ptr<Guard> first;
    std::vector<Guard> rest;
    NOINLINE explicit Member(int x) try : first(new Guard(x)), rest() {
        rest.emplace_back(x);
        may_throw(x);
    } catch (const Error &) {
        DO(8);
    }
};

NOINLINE long constructs(int x) {
    try {
        auto member = std::make_unique<Member>(x);
        std::vector<std::string> names;
        for (int i = 0; i < x % 5; i++) names.push_back(std::to_string(i + x));
        return static_cast<long>(member->rest.size() + names.size());
    } catch (...) {
        return 1;
    }
}

NOINLINE long chooses(int x) {
    try {
        switch (x) {
        case 0: return may_throw(0);
        case 1: return rethrows(1);
        case 2: always_throws(2);
        case 3: return translates(3);
        case 4: return nested_tries(4);
        case 5: return quiet(5);
        case 6: return constructs(6);
        default: return with_cleanup(x);
        }
    } catch (const Derived &e) {
        switch (e.code) {
        case 0: return DO(10);
        case 1: return DO(11);
        case 2: return DO(12);
        case 3: return DO(13);
        case 4: return DO(14);
        case 5: return DO(15);
        default: return DO(16);
        }
    } catch (...) {
        return DO(17);
    }
}

} // namespace

int main() {
    for (int x = 0; x < 100; x++) {
        DO(catches_many(x));
        DO(nested_tries(x));
        DO(quiet(x));
        DO(constructs(x));
        DO(chooses(x % 11));
    }
    return report("exceptions");
}
