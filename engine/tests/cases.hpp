// Calls that tools/dump_program.py wrote down: programs, and what they must compute.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "unisono/executor.hpp"

namespace unisono::tests {

// What one rank needs for a call. Where one array is `shared` it is input and output, and begins as the input.
struct Part {
    std::shared_ptr<const Plan> plan;
    bool shared = false;
    std::vector<std::byte> input, expected;
};

struct Case {
    Geometry geometry{};
    std::string text;
    std::vector<Part> parts;  // of each rank
};

// Reads a file to its end. Plans are numbered from 1 on.
std::vector<Case> read_cases(const char* path);

// Runs a plan of a rank's part and checks what comes out.
void run_and_check(Executor& executor, Plan& plan, const Part& part);

// A plan belongs to one communicator: each makes its own of what was read.
inline std::shared_ptr<Plan> fresh(const Part& part) { return std::make_shared<Plan>(*part.plan); }

}  // namespace unisono::tests
