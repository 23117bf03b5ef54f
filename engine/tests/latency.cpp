// Measures the latency of an all-reduce of 8 bytes.
//
//     latency [ranks] [calls]
//
// The ranks are processes; their number is a power of two. In each step a rank exchanges its value with a partner and
// adds both; with two ranks that is one message each way.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include "check.hpp"
#include "ranks.hpp"
#include "unisono/executor.hpp"

namespace {

using namespace unisono;

constexpr int calls_at_once = 100;  // between two readings of the clock

Plan exchange(std::uint32_t rank, std::uint32_t size) {
    auto program = std::make_shared<Program>();
    program->parts = {Buffer::output};
    program->results = {0};
    program->largest_message = 1;
    std::uint32_t step = 0;
    for (std::uint32_t distance = 1; distance < size; distance *= 2, ++step) {
        const std::uint32_t partner = rank ^ distance;
        const auto channel = static_cast<std::uint16_t>(program->channels.size());
        const auto operand = static_cast<std::uint32_t>(program->operands.size());
        program->channels.insert(program->channels.end(), {{partner, Reach::one}, {partner, Reach::one}});
        program->instructions.push_back({Kind::send, 0, 1, operand, 0, channel, step});
        program->instructions.push_back(
            {Kind::reduce, 1, 1, operand + 1, static_cast<std::uint16_t>(channel + 1), no_channel, step});
        program->operands.push_back({0, no_part, no_part, 0});
        program->operands.push_back({0, no_part, 0, distance * 2 == size});
    }
    program->check(rank, size);
    Plan plan;
    plan.program = std::move(program);
    plan.extents = {{0, sizeof(double)}};
    plan.segment_bytes = 64;
    plan.element_bytes = sizeof(double);
    plan.combine = variants().front().find_many(DType::float64, Reduction::sum);
    plan.fingerprint = 1;
    plan.number = 1;
    plan.text = "an exchange of 8 bytes";
    return plan;
}

void measure(Executor& executor, std::uint32_t rank, std::uint32_t size, int calls) {
    Plan plan = exchange(rank, size);
    const double expected = size * (size + 1) / 2.0;
    std::vector<double> times;
    for (int done = 0; done < calls; done += calls_at_once) {
        const Clock::time_point began = Clock::now();
        for (int call = 0; call < calls_at_once; ++call) {
            double value = rank + 1.0;
            executor.run(plan, &value, &value, deadline_after(std::chrono::minutes(1), began));
            CHECK(value == expected);
        }
        times.push_back(std::chrono::duration<double, std::micro>(Clock::now() - began).count() / calls_at_once);
    }
    if (rank != 0) return;
    std::sort(times.begin(), times.end());
    const auto quantile = [&](double part) {
        return times[static_cast<std::size_t>(part * static_cast<double>(times.size() - 1))];
    };
    std::printf("%u ranks, 8 bytes, %d calls: minimum %.3f, 10 %% %.3f, median %.3f, 90 %% %.3f microseconds\n", size,
                calls, times.front(), quantile(0.1), quantile(0.5), quantile(0.9));
}

}  // namespace

int main(int count, char** arguments) {
    const auto size = static_cast<std::uint32_t>(count > 1 ? std::atoi(arguments[1]) : 2);
    const int calls = count > 2 ? std::atoi(arguments[2]) : 1'000'000;
    CHECK(size >= 2 && (size & (size - 1)) == 0 && calls >= calls_at_once);
    const tests::SharedMemory memory({size, 8, 1 << 16, 1 << 12});
    return tests::run_in_processes(size,
                                   [&](std::uint32_t rank, const std::vector<int>& processes) {
                                       Endpoint endpoint(memory.for_process(rank, processes));
                                       Executor executor(endpoint);
                                       measure(executor, rank, size, calls);
                                   })
               ? 0
               : 1;
}
