// Executes the programs of many ranks in simulated time, event by event.
//
// Nothing here knows a network or an algorithm: the caller gives the time that each action and message takes
// (src/unisono/simulator), and src/unisono/simulator/reference.py defines the same loop in plain Python. *Action*,
// *unit*, *pass* and *track* have the meanings that they have there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <vector>

namespace unisono {

inline constexpr double never = std::numeric_limits<double>::infinity();

// All times are multiples of this (simulator/costs.py gives the reason).
inline constexpr double quantum_s = 0x1p-46;

// Two values of an action: in a pass on whole segments, and in the last pass.
struct PerPass {
    std::span<const double> whole, last;
};

// What a simulation executes. Spans have an entry for each action unless stated otherwise.
struct SimulatedPrograms {
    std::span<const std::int64_t> first;   // one more than units: the first action of each
    std::span<const std::int64_t> sender;  // the action whose message is received, or -1
    std::span<const std::int32_t> step, sent_step;
    std::span<const std::uint8_t> sends;
    PerPass busy_s, leaving_s, occupied_s, rendezvous_s;
    std::span<const double> flight_s;
    std::span<const std::int64_t> room, room_passes;  // empty: channels are unbounded
    std::uint32_t passes = 1, tracks = 1, ports = 1;
};

// Messages that share the bandwidth of links. Without routes they share nothing.
struct SharedLinks {
    std::span<const double> bandwidth;     // of each link
    std::span<const std::int32_t> routes;  // links of each route, `hops` of them, padded with -1
    // Of each entry of `routes`: the flows on the link for each message, where units stand for several ranks. Empty: 1.
    std::span<const std::int32_t> weights;
    std::span<const std::int64_t> route;  // of the message that an action receives
    PerPass bytes;                        // of that message
    std::uint32_t hops = 0;
};

// Rows of `actions` entries, one for each pass; empty where they are not recorded.
struct SimulatedTimes {
    std::vector<double> start, end, leave, arrival;
    std::vector<std::int32_t> level;
    std::vector<double> unit_end, unit_busy;
    std::uint64_t events = 0;
    bool finished = false;  // false: some unit waits for ever
};

// Called now and then with the number of actions executed so far; it may throw.
using Progress = std::function<void(std::uint64_t)>;

// Throws std::invalid_argument if an index is out of range.
void check(const SimulatedPrograms& programs, const SharedLinks& links);

SimulatedTimes simulate(const SimulatedPrograms& programs, const SharedLinks& links, bool record,
                        const Progress& progress);

}  // namespace unisono
