// Programs of a few ranks with random messages, for the event loop of the simulator.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <utility>
#include <vector>

#include "unisono/simulation.hpp"

namespace unisono::tests {

using Random = std::mt19937_64;

inline std::int64_t below(Random& random, std::int64_t end) {
    return std::uniform_int_distribution<std::int64_t>(0, end - 1)(random);
}

// The arrays of SimulatedPrograms and SharedLinks; pairs have the values of whole passes first, then of the last.
struct RandomPrograms {
    std::vector<std::int64_t> first, sender, room, room_passes, route;
    std::vector<std::int32_t> step, routes, weights;
    std::vector<std::uint8_t> sends;
    std::vector<double> busy, leaving, occupied, rendezvous, flight, bandwidth, bytes;
    std::uint32_t passes, tracks, ports, hops = 0;

    // Messages are sent in one order and received in the same, so that the programs end if channels are unbounded.
    explicit RandomPrograms(Random& random) {
        const std::int64_t units = 1 + below(random, 7), messages = units > 1 ? below(random, 60) : 0;
        struct Made {
            std::int64_t message;  // that it receives, or -1
            bool sends;
        };
        std::vector<std::vector<Made>> programs(units);
        std::vector<std::pair<std::int64_t, std::int64_t>> sent;  // unit and index of the action that sends a message
        for (std::int64_t message = 0; message < messages; ++message) {
            const std::int64_t from = below(random, units);
            auto& program = programs[from];
            if (below(random, 2) == 0 || program.empty() || program.back().sends) program.push_back({-1, false});
            program.back().sends = true;
            sent.emplace_back(from, program.size() - 1);
            const bool to_all = below(random, 5) == 0;
            const std::int64_t other = (from + 1 + below(random, units - 1)) % units;
            for (std::int64_t to = 0; to < units; ++to)
                if (to != from && (to_all || to == other)) programs[to].push_back({message, false});
        }
        first.push_back(0);
        for (const auto& program : programs) first.push_back(first.back() + static_cast<std::int64_t>(program.size()));
        for (std::int64_t unit = 0; unit < units; ++unit)
            for (const Made& made : programs[unit]) {
                const bool receives = made.message >= 0;
                sender.push_back(receives ? first[sent[made.message].first] + sent[made.message].second : -1);
                sends.push_back(made.sends);
                step.push_back(static_cast<std::int32_t>(step.size()) / 2);
            }
        passes = static_cast<std::uint32_t>(1 + below(random, 6));
        tracks = static_cast<std::uint32_t>(1 + below(random, passes));
        ports = static_cast<std::uint32_t>(1 + below(random, 3));
        set_times(random);
        if (below(random, 2) == 0) set_room(random);
        set_links(random);
    }

    std::size_t size() const { return sender.size(); }

    SimulatedPrograms programs() const {
        return {first,          sender,           step,   step, sends,       pair(busy), pair(leaving),
                pair(occupied), pair(rendezvous), flight, room, room_passes, passes,     tracks,
                ports};
    }
    SharedLinks links() const { return {bandwidth, routes, weights, route, pair(bytes), hops}; }

  private:
    PerPass pair(const std::vector<double>& values) const {
        return {{values.data(), size()}, {values.data() + size(), size()}};
    }

    std::vector<double> random_times(Random& random, std::size_t count, std::int64_t most) const {
        std::vector<double> times(count);
        for (double& time : times) time = static_cast<double>(below(random, most + 1)) * 0x1p-20;
        return times;
    }

    void set_times(Random& random) {
        busy = random_times(random, 2 * size(), below(random, 3));
        leaving = random_times(random, 2 * size(), 3);
        occupied = random_times(random, 2 * size(), 3);
        flight = random_times(random, size(), 2);
        rendezvous.assign(2 * size(), -1);
        if (below(random, 2) == 0)
            for (double& extra : rendezvous) extra = static_cast<double>(below(random, 3) - 1) * 0x1p-20;
    }

    std::int64_t unit_of(std::int64_t action) const {
        return std::upper_bound(first.begin(), first.end(), action) - first.begin() - 1;
    }

    // Channels hold some messages: the one that many before it in the same channel must have been read, in some pass.
    void set_room(Random& random) {
        const std::int64_t depth = 1 + below(random, 4);
        room.assign(size(), -1);
        room_passes.assign(size(), 0);
        std::map<std::pair<std::int64_t, std::int64_t>, std::vector<std::int64_t>> channels;
        for (std::int64_t action = 0; action < static_cast<std::int64_t>(size()); ++action)
            if (sender[action] >= 0) channels[{unit_of(sender[action]), unit_of(action)}].push_back(action);
        for (const auto& [ends, receives] : channels) {
            const auto count = static_cast<std::int64_t>(receives.size());
            for (std::int64_t index = 0; index < count; ++index) {
                const std::int64_t passes_before = index >= depth ? 0 : (depth - index + count - 1) / count;
                room[receives[index]] = receives[index - depth + passes_before * count];
                room_passes[receives[index]] = passes_before;
            }
        }
    }

    void set_links(Random& random) {
        if (below(random, 3) == 0) return;
        const std::int64_t links = 1 + below(random, 6), count = 1 + below(random, 9);
        hops = static_cast<std::uint32_t>(1 + below(random, 3));
        for (std::int64_t link = 0; link < links; ++link)
            bandwidth.push_back(1e9 * static_cast<double>(1 + below(random, 3)));
        for (std::int64_t number = 0; number < count * hops; ++number)
            routes.push_back(static_cast<std::int32_t>(below(random, links + 1)) - 1);
        for (std::int64_t number = 0; number < count; ++number)  // a route visits a link once
            for (std::uint32_t hop = 1; hop < hops; ++hop)
                for (std::uint32_t before = 0; before < hop; ++before)
                    if (routes[number * hops + hop] == routes[number * hops + before]) routes[number * hops + hop] = -1;
        if (below(random, 2) == 0)
            for (std::size_t entry = 0; entry < routes.size(); ++entry)
                weights.push_back(static_cast<std::int32_t>(1 + below(random, 3)));
        for (std::size_t action = 0; action < size(); ++action) route.push_back(below(random, count));
        for (std::size_t entry = 0; entry < 2 * size(); ++entry)
            bytes.push_back(static_cast<double>(below(random, 5)) * 1000);
    }
};

}  // namespace unisono::tests
