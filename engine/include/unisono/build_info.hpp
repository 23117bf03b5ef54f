// What this engine was built with: printed by `unisono info`, so that a report of a problem can say it.
#pragma once

#include <string>

namespace unisono {

struct BuildInfo {
    std::string compiler;      // name and version
    long cpp_standard;         // the value of __cplusplus, e.g. 202002
    std::string architecture;  // the instruction set the engine was compiled for
    bool optimised;
};

BuildInfo build_info();

}  // namespace unisono
