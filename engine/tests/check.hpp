// A check that ends the program with the place and the words of what is not so.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace unisono::tests {

[[noreturn]] inline void give_up(const char* what, const char* file, int line) {
    std::fprintf(stderr, "%s:%d: not so: %s\n", file, line, what);
    std::fflush(nullptr);
    std::_Exit(1);  // other threads may be in the middle of something: no destructors
}

}  // namespace unisono::tests

#define CHECK(condition) \
    if (!(condition)) ::unisono::tests::give_up(#condition, __FILE__, __LINE__)
