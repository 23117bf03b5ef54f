// Measures the cost of interpreting a program: the same all-reduce of float32 numbers as a compiled program and written
// by hand (handmade.hpp), alternately.
//
//     by_hand FILE [seconds]
//
// The file comes from tools/dump_program.py --no-data; its programs must have the communication order of handmade.hpp.
// Each case takes about `seconds` (default 1). The ranks are processes.
#include <sys/mman.h>

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

// All ranks must make the same number of calls, so it is computed from this estimate of the duration of a call.
double estimated_seconds(std::uint64_t bytes, std::uint32_t size) {
    return (1e-6 * size + static_cast<double>(bytes) / 2e9) * (tests::enough_cores(size) ? 1 : 10);
}
constexpr double longest_turn = 5e-3;  // seconds before the other way's turn
constexpr double least_turns = 3;

double median(std::vector<double>& values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

// Returns the number of elements of the vector.
std::uint64_t elements_of(const Plan& plan) {
    std::uint64_t end = 0;
    for (const Plan::Extent& extent : plan.extents) end = std::max(end, extent.offset + extent.length);
    return end / sizeof(float);
}

// One rank of both ways, each on a separate communicator.
class Contest {
  public:
    Contest(const tests::Part& part, const Settings& for_program, const Settings& for_hand)
        : plan_(tests::fresh(part)), data_(elements_of(*plan_)), first_(for_program), second_(for_hand),
          executor_(first_), handmade_(second_) {}

    std::uint64_t bytes() const { return data_.size() * sizeof(float); }
    void by_program() { executor_.run(*plan_, data_.data(), data_.data(), deadline_after(std::chrono::minutes(1))); }
    void by_hand() {
        handmade_.all_reduce(data_.data(), data_.size(), plan_->segment_bytes, plan_->passes, plan_->streams,
                             deadline_after(std::chrono::minutes(1)));
    }
    // Checks that both ways give the same numbers. Leaves zeros, because sums of zeros stay zero.
    void check(std::uint32_t rank, std::uint32_t size) {
        for (const auto way : {&Contest::by_program, &Contest::by_hand}) {
            for (std::size_t at = 0; at < data_.size(); ++at) data_[at] = static_cast<float>(rank + at % 1000);
            (this->*way)();
            for (std::size_t at = 0; at < data_.size(); ++at)
                CHECK(data_[at] == static_cast<float>(size * (at % 1000) + size * (size - 1) / 2));
        }
        std::fill(data_.begin(), data_.end(), 0.0f);
    }
    double seconds_per_call(void (Contest::*way)(), std::uint64_t calls) {
        const Clock::time_point began = Clock::now();
        for (std::uint64_t done = 0; done < calls; ++done) (this->*way)();
        return std::chrono::duration<double>(Clock::now() - began).count() / static_cast<double>(calls);
    }

  private:
    std::shared_ptr<Plan> plan_;
    std::vector<float> data_;
    Endpoint first_, second_;
    Executor executor_;
    Handmade handmade_;
};

struct Times {
    double program, hand;  // seconds of a call
};

Times compete(Contest& contest, std::uint32_t rank, std::uint32_t size, double seconds) {
    contest.check(rank, size);
    const double estimate = estimated_seconds(contest.bytes(), size);
    const double turn = std::min(longest_turn, seconds / (2 * least_turns));
    const auto calls = static_cast<std::uint64_t>(std::max(1.0, turn / estimate));
    const auto turns =
        static_cast<std::uint64_t>(std::max(least_turns, seconds / (2 * estimate * static_cast<double>(calls))));
    std::vector<double> programs, hands;
    for (std::uint64_t done = 0; done < turns; ++done) {
        programs.push_back(contest.seconds_per_call(&Contest::by_program, calls));
        hands.push_back(contest.seconds_per_call(&Contest::by_hand, calls));
    }
    return {median(programs), median(hands)};
}

// The location of memory, which is random, makes a difference of several per cent. So there are several trials, with
// fresh memory, and the two communicators are exchanged in every other trial.
constexpr std::size_t trials = 6;

bool measure(const Case& one, double seconds, Times* shared) {
    const std::uint32_t size = one.geometry.size;
    std::vector<double> programs, hands, ratios;
    for (std::size_t trial = 0; trial < trials; ++trial) {
        const tests::SharedMemory memory(one.geometry, 2);
        const auto rank = [&](std::uint32_t number, const std::vector<int>& processes) {
            const std::size_t first = trial % 2;
            Contest contest(one.parts[number], memory.for_process(number, processes, first),
                            memory.for_process(number, processes, 1 - first));
            const Times times = compete(contest, number, size, seconds / trials);
            if (number == 0) *shared = times;
        };
        if (!tests::run_in_processes(size, rank)) return false;
        programs.push_back(shared->program);
        hands.push_back(shared->hand);
        ratios.push_back(shared->program / shared->hand);
    }
    const double ratio = median(ratios);
    std::printf("%5u | %9llu | %10.2f | %10.2f | %5.3f (%5.3f to %5.3f)\n", size,
                static_cast<unsigned long long>(elements_of(*one.parts[0].plan) * sizeof(float)),
                median(programs) * 1e6, median(hands) * 1e6, ratio, ratios.front(), ratios.back());
    return true;
}

}  // namespace

int main(int count, char** arguments) {
    CHECK(count > 1);
    const double seconds = count > 2 ? std::atof(arguments[2]) : 1;
    void* shared = ::mmap(nullptr, sizeof(Times), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(shared != MAP_FAILED);
    std::printf("ranks |     bytes | program us |    hand us | ratio, median of the trials (least to most)\n");
    for (const Case& one : tests::read_cases(arguments[1]))
        if (!measure(one, seconds, static_cast<Times*>(shared))) return 1;
    return 0;
}
