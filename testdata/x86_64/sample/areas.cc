// C++ names, with overloads and a template.
#define KEPT __attribute__((noinline, noclone))

namespace shapes {
struct Square {
    int side;
    KEPT int area() const { return side * side; }
};

KEPT int sum(int a, int b) { return a + b; }
KEPT int sum(int a, int b, int c) { return a + b + c; }

template <typename T> KEPT T largest(const T *v, int n)
{
    T best = v[0];
    for (int i = 1; i < n; i++)
        if (v[i] > best)
            best = v[i];
    return best;
}
}

extern "C" int areas(int n)
{
    int v[] = {shapes::sum(n, 1), shapes::sum(n, 2, 3), shapes::Square{n}.area()};
    return shapes::largest(v, 3);
}
