// The compiler and options of this build, printed by `unisono info` for bug reports.
#pragma once

#include <string>

namespace unisono {

struct BuildInfo {
    std::string compiler;      // name and version
    long cpp_standard;         // the value of __cplusplus, such as 202002
    std::string architecture;  // the processor architecture it was compiled for
    bool optimised;
};

BuildInfo build_info();

}  // namespace unisono
