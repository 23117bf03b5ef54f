// What it costs to interpret a program: the same all-reduce of float32 numbers, once as a compiled program and once
// written by hand (handmade.hpp), in turns in one run.
//
//     by_hand FILE [seconds]
//
// The file comes from tools/dump_program.py --no-data; its programs must be those of the order in handmade.hpp. Each
// case takes about so many seconds (default 1). The ranks are processes.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "cases.hpp"
#include "check.hpp"
#include "handmade.hpp"
#include "ranks.hpp"

namespace {

using namespace unisono;
using tests::Case;
using tests::Handmade;

// All ranks must make the same number of calls, so nobody measures how many: this is about how long a call takes.
double estimated_seconds(std::uint64_t bytes, std::uint32_t size) {
    return (1e-6 * size + static_cast<double>(bytes) / 2e9) * (tests::enough_cores(size) ? 1 : 10);
}
constexpr double turn_seconds = 2e-3;  // before it is the other one's turn

double median(std::vector<double>& values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

struct Contest {
    Executor& executor;
    Handmade& handmade;
    Plan& plan;
    std::uint64_t count;
    std::vector<float> data;

    void by_program() { executor.run(plan, data.data(), data.data(), Clock::now() + std::chrono::minutes(1)); }
    void by_hand() {
        handmade.all_reduce(data.data(), count, plan.segment_bytes, plan.passes, plan.streams,
                            Clock::now() + std::chrono::minutes(1));
    }
    template <typename Call>
    void check(Call call, std::uint32_t rank, std::uint32_t size) {
        for (std::uint64_t at = 0; at < count; ++at) data[at] = static_cast<float>(rank + at % 1000);
        call();
        for (std::uint64_t at = 0; at < count; ++at)
            CHECK(data[at] == static_cast<float>(size * (at % 1000) + size * (size - 1) / 2));
    }
    template <typename Call>
    double seconds_per_call(Call call, std::uint64_t calls) {
        const Clock::time_point began = Clock::now();
        for (std::uint64_t done = 0; done < calls; ++done) call();
        return std::chrono::duration<double>(Clock::now() - began).count() / static_cast<double>(calls);
    }
};

// How many elements the vector has: the places of an all-reduce in one array are its parts.
std::uint64_t elements_of(const Plan& plan) {
    std::uint64_t end = 0;
    for (const Plan::Extent& extent : plan.extents) end = std::max(end, extent.offset + extent.length);
    return end / sizeof(float);
}

void compete(const Case& one, std::uint32_t rank, const std::vector<int>& processes, const tests::SharedMemory& memory,
             double seconds) {
    const std::uint32_t size = one.geometry.size;
    Endpoint first(memory.for_process(rank, processes, 0)), second(memory.for_process(rank, processes, 1));
    Executor executor(first);
    Handmade handmade(second);
    const std::shared_ptr<Plan> own = tests::fresh(one.parts[rank]);
    Plan& plan = *own;
    const std::uint64_t count = elements_of(plan);
    Contest contest{executor, handmade, plan, count, std::vector<float>(count)};
    const auto by_program = [&] { contest.by_program(); };
    const auto by_hand = [&] { contest.by_hand(); };
    contest.check(by_program, rank, size);
    contest.check(by_hand, rank, size);
    std::fill(contest.data.begin(), contest.data.end(), 0.0f);  // sums of zeros stay zeros, however often

    const double estimate = estimated_seconds(count * sizeof(float), size);
    const auto calls = static_cast<std::uint64_t>(std::max(1.0, turn_seconds / estimate));
    const auto turns = static_cast<std::uint64_t>(
        std::max(3.0, seconds / (2 * estimate * static_cast<double>(calls))));
    std::vector<double> programs, hands, ratios;
    for (std::uint64_t done = 0; done < turns; ++done) {
        programs.push_back(contest.seconds_per_call(by_program, calls));
        hands.push_back(contest.seconds_per_call(by_hand, calls));
        ratios.push_back(programs.back() / hands.back());
    }
    if (rank != 0) return;
    const double program = median(programs), hand = median(hands);
    std::printf("%5u | %9llu | %10.2f | %10.2f | %6.3f | %6.3f | %6.3f\n", size,
                static_cast<unsigned long long>(count * sizeof(float)), program * 1e6, hand * 1e6, program / hand,
                programs.front() / hands.front(), median(ratios));
}

}  // namespace

int main(int count, char** arguments) {
    CHECK(count > 1);
    const double seconds = count > 2 ? std::atof(arguments[2]) : 1;
    std::printf("ranks |     bytes | program us |    hand us | ratio of medians, of minima, median of ratios\n");
    for (const Case& one : tests::read_cases(arguments[1])) {
        const tests::SharedMemory memory(one.geometry, 2);  // a communicator for each of the two
        const auto rank = [&](std::uint32_t number, const std::vector<int>& processes) {
            compete(one, number, processes, memory, seconds);
        };
        if (!tests::run_in_processes(one.geometry.size, rank)) return 1;
    }
    return 0;
}
