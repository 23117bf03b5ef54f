// Finds the variants of the loops that this processor can run.
#include "unisono/reduce.hpp"

namespace unisono {

// The functions that combine.cpp, divide.cpp and wire_loops.cpp define for each instruction set.
#define UNISONO_DECLARE(variant)                                                                               \
    namespace variant {                                                                                        \
    Combine find_combine(DType dtype, Reduction reduction);                                                    \
    CombineMany find_many(DType dtype, Reduction reduction);                                                   \
    Divide find_divide(DType dtype);                                                                           \
    const WireLoops* find_wire(Wire wire);                                                                     \
    inline Variant named(const char* name) { return {name, find_combine, find_many, find_divide, find_wire}; } \
    }

UNISONO_DECLARE(baseline)
#if defined(UNISONO_HAS_X86_VARIANTS)
UNISONO_DECLARE(x86_64_v3)
UNISONO_DECLARE(x86_64_v4)
#endif

namespace {

std::vector<Variant> runnable() {
    std::vector<Variant> found;
#if defined(UNISONO_HAS_X86_VARIANTS)
    __builtin_cpu_init();
    const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
                    __builtin_cpu_supports("bmi2");  // every processor with AVX2 has F16C
    const bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                    __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                    __builtin_cpu_supports("avx512vl");
    if (v4) found.push_back(x86_64_v4::named("x86-64-v4"));
    if (v3) found.push_back(x86_64_v3::named("x86-64-v3"));
#endif
    found.push_back(baseline::named("baseline"));
    return found;
}

}  // namespace

const std::vector<Variant>& variants() {
    static const std::vector<Variant> found = runnable();
    return found;
}

}  // namespace unisono
