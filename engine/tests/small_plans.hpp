// Plans of a few instructions, made by hand.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "unisono/executor.hpp"

namespace unisono::tests {

// Returns a plan whose data is one part of `bytes`.
inline std::shared_ptr<Plan> plan_of(std::uint64_t bytes, const std::string& text, const Program& program) {
    static std::atomic<std::uint64_t> made = 1'000'000;  // above the numbers of plans read from a file
    auto plan = std::make_shared<Plan>();
    plan->program = std::make_shared<Program>(program);
    plan->extents = {{0, bytes}};
    plan->segment_bytes = bytes;
    plan->fingerprint = std::hash<std::string>()(text);
    plan->text = text;
    plan->number = ++made;
    return plan;
}

inline Program empty_program() {
    Program program;
    program.parts = {Buffer::output};
    program.largest_message = 1;
    return program;
}

// Returns a rank's part of a message from one rank to another.
inline std::shared_ptr<Plan> message(std::uint32_t rank, std::uint32_t from, std::uint32_t to, std::uint64_t bytes) {
    Program program = empty_program();
    if (rank == from) {
        program.channels = {{to, Reach::one}};
        program.instructions = {{Kind::send, 0, 1, 0, 0, 0, 0}};
        program.operands = {{0, no_part, no_part, 0}};
    } else if (rank == to) {
        program.channels = {{from, Reach::one}};
        program.instructions = {{Kind::receive, 1, 1, 0, 0, no_channel, 0}};
        program.operands = {{0, no_part, 0, 1}};
    }
    return plan_of(bytes, "a message of " + std::to_string(bytes) + " bytes", program);
}

// Returns a rank's part of an all-reduce of one double between two ranks.
inline std::shared_ptr<Plan> exchange(std::uint32_t rank, const std::string& text) {
    Program program = empty_program();
    const std::uint32_t other = 1 - rank;
    program.channels = {{other, Reach::one}, {other, Reach::one}};
    program.instructions = {{Kind::send, 0, 1, 0, 0, 0, 0}, {Kind::reduce, 1, 1, 1, 1, no_channel, 0}};
    program.operands = {{0, no_part, no_part, 0}, {0, no_part, 0, 1}};
    auto plan = plan_of(sizeof(double), text, program);
    plan->element_bytes = sizeof(double);
    plan->combine = variants().front().find_many(DType::float64, Reduction::sum);
    return plan;
}

}  // namespace unisono::tests
