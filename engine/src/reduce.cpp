// Finds, once, which of the loops this processor can run.
#include "unisono/reduce.hpp"

namespace unisono {

namespace baseline {
Combine find_combine(DType dtype, Reduction reduction);
}
#if defined(UNISONO_HAS_X86_VARIANTS)
namespace x86_64_v3 {
Combine find_combine(DType dtype, Reduction reduction);
}
namespace x86_64_v4 {
Combine find_combine(DType dtype, Reduction reduction);
}
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
    if (v4) found.push_back({"x86-64-v4", x86_64_v4::find_combine});
    if (v3) found.push_back({"x86-64-v3", x86_64_v3::find_combine});
#endif
    found.push_back({"baseline", baseline::find_combine});
    return found;
}

}  // namespace

const std::vector<Variant>& variants() {
    static const std::vector<Variant> found = runnable();
    return found;
}

}  // namespace unisono
