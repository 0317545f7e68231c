// The standard library's templates: many functions of all sizes that nobody wrote with us in mind.
#include <algorithm>
#include <deque>
#include <iostream>
#include <list>
#include <map>
#include <numeric>
#include <random>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <unordered_map>
#include <vector>

#include "corpus.h"

namespace {

struct Token {
    enum Kind { Number, Plus, Minus, Times, Divide, Open, Close, Name, End } kind;
    long value = 0;
    std::string name;
};

std::vector<Token> tokens_of(const std::string &text) {
    static const std::regex pattern(R"((\d+)|([a-z]+)|([-+*/()])|\s+)");
    std::vector<Token> tokens;
    for (std::sregex_iterator it(text.begin(), text.end(), pattern), end; it != end; ++it) {
        if ((*it)[1].matched) tokens.push_back({Token::Number, std::stol((*it)[1]), {}});
        else if ((*it)[2].matched) tokens.push_back({Token::Name, 0, (*it)[2]});
        else if ((*it)[3].matched) {
            switch (*(*it)[3].first) {
            case '+': tokens.push_back({Token::Plus, 0, {}}); break;
            case '-': tokens.push_back({Token::Minus, 0, {}}); break;
            case '*': tokens.push_back({Token::Times, 0, {}}); break;
            case '/': tokens.push_back({Token::Divide, 0, {}}); break;
            case '(': tokens.push_back({Token::Open, 0, {}}); break;
            case ')': tokens.push_back({Token::Close, 0, {}}); break;
            }
        }
    }
    tokens.push_back({Token::End, 0, {}});
    return tokens;
}

class Parser {
public:
    Parser(const std::vector<Token> &tokens, const std::map<std::string, long> &names) : at_(&tokens[0]), names_(names) {}
    long sum() {
        long value = product();
        for (;;) {
            switch (at_->kind) {
            case Token::Plus: at_++; value += product(); break;
            case Token::Minus: at_++; value -= product(); break;
            default: return value;
            }
        }
    }

private:
    long product() {
        long value = atom();
        while (at_->kind == Token::Times || at_->kind == Token::Divide) {
            bool times = (at_++)->kind == Token::Times;
            long right = atom();
            if (!times && right == 0) throw std::domain_error("division by zero");
            value = times ? value * right : value / right;
        }
        return value;
    }
    long atom() {
        const Token &token = *at_++;
        switch (token.kind) {
        case Token::Number: return token.value;
        case Token::Name: return names_.at(token.name);
        case Token::Minus: return -atom();
        case Token::Plus: return atom();
        case Token::Open: { long value = sum(); at_++; return value; }
        case Token::Times: case Token::Divide: throw std::invalid_argument("operand expected");
        case Token::Close: throw std::invalid_argument("unbalanced");
        case Token::End: throw std::length_error("text ends");
        }
        return 0;
    }
    const Token *at_;
    const std::map<std::string, long> &names_;
};

NOINLINE long evaluate(const std::string &text) {
    static const std::map<std::string, long> names{{"one", 1}, {"two", 2}, {"ten", 10}};
    try {
        auto tokens = tokens_of(text);
        return Parser(tokens, names).sum();
    } catch (const std::out_of_range &) {
        return -1;
    } catch (const std::logic_error &error) {
        return error.what()[0];
    }
}

template <class Container> NOINLINE long churn(Container container, unsigned seed) {
    std::minstd_rand random(seed);
    for (int i = 0; i < 50; i++) container.insert(container.end(), static_cast<int>(random() % 100));
    return std::accumulate(container.begin(), container.end(), 0L);
}

NOINLINE long sorts(unsigned seed) {
    std::mt19937 random(seed);
    std::vector<std::string> words;
    for (int i = 0; i < 40; i++) words.push_back(std::to_string(random() % 1000));
    std::sort(words.begin(), words.end());
    std::stable_sort(words.begin(), words.end(), [](auto &a, auto &b) { return a.size() < b.size(); });
    std::partial_sort(words.begin(), words.begin() + 5, words.end(), std::greater<>());
    auto last = std::unique(words.begin(), words.end());
    std::unordered_map<std::string, int> counts;
    for (auto word = words.begin(); word != last; ++word) counts[word->substr(0, 1)]++;
    std::ostringstream out;
    out << counts.size() << ' ' << std::hex << words.size() << ' ' << 1.5 * counts["1"];
    return static_cast<long>(out.str().size() + out.str()[0]);
}

} // namespace

int main() {
    for (const char *text : {"1 + 2 * 3", "(ten - two) / 4", "1 / 0", "2 * (3", "unknown", "--one", "*"}) DO(evaluate(text));
    for (unsigned i = 1; i < 10; i++) {
        DO(churn(std::vector<int>(), i) + churn(std::list<int>(), i) + churn(std::deque<int>(), i));
        DO(churn(std::set<int>(), i) + churn(std::multiset<int>(), i) + sorts(i));
    }
    std::cout << "ready\n" << std::flush;
    return report("library");
}
