#include "unisono/build_info.hpp"

namespace unisono {

BuildInfo build_info() {
    BuildInfo info;
#if defined(__clang__)
    info.compiler = "clang " __clang_version__;
#elif defined(__GNUC__)
    info.compiler = "gcc " __VERSION__;
#else
    info.compiler = "unknown";
#endif
    info.cpp_standard = __cplusplus;
#if defined(__x86_64__)
    info.architecture = "x86_64";
#elif defined(__aarch64__)
    info.architecture = "aarch64";
#else
    info.architecture = "unknown";
#endif
#if defined(__OPTIMIZE__)
    info.optimised = true;
#else
    info.optimised = false;
#endif
    return info;
}

}  // namespace unisono
