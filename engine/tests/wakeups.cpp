// Measures how late a rank notices a message that is sent just as the rank goes to sleep.
//
//     wakeups [messages]
//
// The two ranks are processes. Rank 1 waits, and goes to sleep after 20 microseconds. Rank 0 sends the time after a
// delay that sweeps over that moment. A lost wake-up costs rank 1 the rest of its sleep, which is a millisecond or
// more.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "check.hpp"
#include "ranks.hpp"
#include "small_plans.hpp"

namespace {

using namespace unisono;
using std::chrono::microseconds;

constexpr double late_us = 900;
constexpr int delays = 1000;
constexpr Nanoseconds delay_step{100};

double now_us() { return std::chrono::duration<double, std::micro>(Clock::now().time_since_epoch()).count(); }

void spin_for(Nanoseconds length) {
    const Clock::time_point until = Clock::now() + length;
    while (Clock::now() < until) pause_core();
}

// Exchanges `messages` messages; returns the microseconds from sending to receiving each of them.
std::vector<double> delivery_times_us(Endpoint& endpoint, std::uint32_t rank, int messages) {
    Executor executor(endpoint);
    const auto plan = tests::exchange(rank, "the time");
    std::vector<double> times_us;
    for (int message = 0; message < messages; ++message) {
        if (rank == 0) spin_for(message % delays * delay_step);
        double sent_us = rank == 0 ? now_us() : 0;  // the sum of both is the time that rank 0 sends
        executor.run(*plan, &sent_us, &sent_us, deadline_after(std::chrono::minutes(1)));
        times_us.push_back(now_us() - sent_us);
    }
    return times_us;
}

}  // namespace

int main(int count, char** arguments) {
    const int messages = count > 1 ? std::atoi(arguments[1]) : 200'000;
    CHECK(messages > 0);
    const tests::SharedMemory memory({2, 8, 1 << 16, 1 << 12});
    return tests::run_in_processes(
               2,
               [&](std::uint32_t rank, const std::vector<int>& processes) {
                   Settings settings = memory.for_process(rank, processes);
                   settings.wait_policy = {microseconds(0), microseconds(20)};
                   Endpoint endpoint(settings);
                   std::vector<double> times_us = delivery_times_us(endpoint, rank, messages);
                   if (rank == 0) return;
                   std::sort(times_us.begin(), times_us.end());
                   const auto late = times_us.end() - std::upper_bound(times_us.begin(), times_us.end(), late_us);
                   std::printf("%d messages: %td later than %.0f microseconds; median %.2f, 99 %% %.2f microseconds\n",
                               messages, late, late_us, times_us[times_us.size() / 2],
                               times_us[times_us.size() * 99 / 100]);
               })
               ? 0
               : 1;
}
