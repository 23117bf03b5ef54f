// Calls that tools/dump_program.py has written: programs and their expected results.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "unisono/executor.hpp"

namespace unisono::tests {

// One rank's part of a call. If `shared`, one array is both input and output.
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

// Reads a file. Plans are numbered from 1.
std::vector<Case> read_cases(const char* path);

// Runs the plan of a rank's part and checks its result.
void run_and_check(Executor& executor, Plan& plan, const Part& part);

// Returns a copy of the plan: a plan belongs to one communicator.
inline std::shared_ptr<Plan> fresh(const Part& part) { return std::make_shared<Plan>(*part.plan); }

}  // namespace unisono::tests
