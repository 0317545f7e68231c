cat > program.cpp <<'CPP'
#include <algorithm>
#include <iostream>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>
template <int N> struct Fib { static constexpr long value = Fib<N - 1>::value + Fib<N - 2>::value; };
template <> struct Fib<1> { static constexpr long value = 1; };
template <> struct Fib<0> { static constexpr long value = 0; };
struct Shape { virtual ~Shape() = default; virtual double area() const = 0; };
struct Square : Shape { double side; explicit Square(double s) : side(s) {} double area() const override { return side * side; } };
int main() {
    std::map<std::string, std::vector<int>> lists;
    for (int i = 0; i < 100; i++) lists["k" + std::to_string(i % 7)].push_back(i * i);
    for (auto &[name, list] : lists) std::sort(list.begin(), list.end(), std::greater<>());
    std::unique_ptr<Shape> shape = std::make_unique<Square>(3);
    try { if (lists.size() == 7) throw std::runtime_error("seven"); }
    catch (const std::exception &e) { std::cout << e.what() << shape->area() << Fib<80>::value << lists.size() << '\n'; }
}
CPP
for options in "-O0 -g" "-O3 -std=c++20"; do
    g++ -B"$BIN/" $options -c program.cpp -o program.o
    sha256sum program.o
done
echo 'int f() { return undeclared; } struct { int x; } s = "no";' > wrong.cpp
g++ -B"$BIN/" -Wall -c wrong.cpp || echo "status $?"
