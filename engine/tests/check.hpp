// A check that ends the program with the location and the text of a failed condition.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace unisono::tests {

[[noreturn]] inline void give_up(const char* what, const char* file, int line) {
    std::fprintf(stderr, "%s:%d: check failed: %s\n", file, line, what);
    std::fflush(nullptr);
    std::_Exit(1);  // without destructors, because other threads may still run
}

}  // namespace unisono::tests

#define CHECK(condition) \
    if (!(condition)) ::unisono::tests::give_up(#condition, __FILE__, __LINE__)
