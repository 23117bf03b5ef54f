// Runs the event loop of the simulator on random programs, and on arrays that make no sense.
//
//     simulations [rounds]
//
// tests/simulator compares times with those of the loop in Python. Here a sanitizer watches the memory, and what every
// simulation has in common is checked.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>

#include "../src/simulator/event_queue.hpp"
#include "check.hpp"
#include "random_programs.hpp"

namespace {

using namespace unisono;
using tests::below;
using tests::Random;
using tests::RandomPrograms;

const Progress no_progress = [](std::uint64_t) {};

void check_times(const RandomPrograms& made, const SimulatedTimes& times) {
    const std::size_t count = made.size();
    for (std::size_t pass = 0; pass < made.passes; ++pass)
        for (std::size_t unit = 0; unit + 1 < made.first.size(); ++unit)
            for (auto action = made.first[unit]; action < made.first[unit + 1]; ++action) {
                const std::size_t here = pass * count + action;
                CHECK(times.end[here] >= times.start[here] && times.end[here] <= times.unit_end[unit]);
                if (action > made.first[unit]) CHECK(times.start[here] >= times.end[here - 1]);
                if (made.sender[action] < 0) continue;
                const double left = times.leave[pass * count + made.sender[action]];
                CHECK(left >= times.end[pass * count + made.sender[action]]);
                CHECK(times.arrival[here] >= left + made.flight[action]);
                CHECK(times.start[here] >= times.arrival[here]);
            }
}

void simulate_random_programs(Random& random, int rounds) {
    int finished = 0;
    for (int round = 0; round < rounds; ++round) {
        const RandomPrograms made(random);
        const SimulatedPrograms programs = made.programs();
        const SharedLinks links = made.links();
        check(programs, links);
        const SimulatedTimes times = simulate(programs, links, true, no_progress);
        const SimulatedTimes again = simulate(programs, links, false, no_progress);
        CHECK(again.finished == times.finished);
        CHECK(times.finished || !made.room.empty());
        if (!times.finished) continue;
        ++finished;
        CHECK(again.unit_end == times.unit_end);
        check_times(made, times);
    }
    std::printf("%d of %d random programs finished\n", finished, rounds);
}

template <typename T>
void replace_one(Random& random, std::vector<T>& values, std::initializer_list<double> by) {
    if (values.empty()) return;
    const double value = *(by.begin() + below(random, static_cast<std::int64_t>(by.size())));
    values[below(random, static_cast<std::int64_t>(values.size()))] = static_cast<T>(value);
}

// Changes one value: most changes are errors, and the rest are programs that may wait for ever.
void spoil(Random& random, RandomPrograms& made) {
    const double most = static_cast<double>(made.size());
    switch (below(random, 13)) {
        case 0: replace_one(random, made.first, {-1, 1, most + 1}); break;
        case 1: replace_one(random, made.sender, {-2, 0, most - 1, most}); break;
        case 2: replace_one(random, made.room, {-1, 0, most - 1, most}); break;
        case 3: replace_one(random, made.room_passes, {-1, 0, 2, 0x1p31}); break;
        case 4: replace_one(random, made.route, {-1, 0, 9, 0x1p40}); break;
        case 5: replace_one(random, made.routes, {-2, 0, 7, 0x1p30}); break;
        case 6: replace_one(random, made.bandwidth, {0, -1, NAN}); break;
        case 7: replace_one(random, made.bytes, {-1, NAN, INFINITY}); break;
        case 8: replace_one(random, made.busy, {-1, NAN, INFINITY}); break;
        case 9: replace_one(random, made.occupied, {-1, NAN, INFINITY}); break;
        case 10: replace_one(random, made.rendezvous, {NAN, INFINITY, 1}); break;
        case 11: replace_one(random, made.weights, {-1, 0, 0x1p30}); break;
        default: made.tracks = made.passes + 1; break;
    }
}

void simulate_spoiled_programs(Random& random, int rounds) {
    int refused = 0;
    for (int round = 0; round < rounds; ++round) {
        RandomPrograms made(random);
        spoil(random, made);
        try {
            check(made.programs(), made.links());
            simulate(made.programs(), made.links(), below(random, 2) == 0, no_progress);
        } catch (const std::invalid_argument&) {
            ++refused;
        }
    }
    CHECK(refused > 0);
    std::printf("%d of %d spoiled programs refused\n", refused, rounds);
}

// Pushes more events than the heap holds, and pops them in between: they come in order.
void order_events(Random& random, int rounds) {
    for (int round = 0; round < rounds; ++round) {
        EventQueue queue;
        std::vector<std::pair<double, std::uint64_t>> pushed, popped;
        double now = 0;
        const auto pop = [&] {
            const TimedEvent event = queue.pop();
            CHECK(event.time >= now);
            now = event.time;
            popped.emplace_back(event.time, event.key);
        };
        for (int event = 0; event < 60'000; ++event) {
            const double time = now + static_cast<double>(below(random, 1000));
            const auto index = static_cast<std::uint64_t>(event);
            queue.push({time, EventType::head, index, 0});
            pushed.emplace_back(time, TimedEvent(time, EventType::head, index, 0).key);
            if (below(random, 5) == 0) pop();
        }
        while (!queue.empty()) pop();
        std::sort(pushed.begin(), pushed.end());
        std::sort(popped.begin(), popped.end());
        CHECK(pushed == popped);
    }
    std::printf("%d queues kept the order of their events\n", rounds);
}

void stop_when_asked(Random& random) {
    for (;;) {
        RandomPrograms made(random);
        if (made.size() < 20 || !made.room.empty()) continue;
        made.passes = 20'000;
        bool stopped = false;
        try {
            simulate(made.programs(), made.links(), false, [](std::uint64_t) { throw std::runtime_error("stop"); });
        } catch (const std::runtime_error&) {
            stopped = true;
        }
        CHECK(stopped);
        break;
    }
    std::printf("a simulation stopped when it was asked to\n");
}

}  // namespace

int main(int count, char** arguments) {
    const int rounds = count > 1 ? std::atoi(arguments[1]) : 1000;
    Random random(20261118);
    simulate_random_programs(random, rounds);
    simulate_spoiled_programs(random, rounds);
    order_events(random, std::max(1, rounds / 100));
    stop_when_asked(random);
}
