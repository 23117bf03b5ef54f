#include <algorithm>
#include <stdexcept>

#include "unisono/simulation.hpp"

namespace unisono {

namespace {

template <typename T>
bool all_between(std::span<const T> values, std::int64_t least, std::int64_t end) {
    return std::all_of(values.begin(), values.end(), [&](T value) { return value >= least && value < end; });
}

}  // namespace

void check(const SimulatedPrograms& programs, const SharedLinks& links) {
    const auto actions = static_cast<std::int64_t>(programs.sender.size());
    const bool in_order = std::is_sorted(programs.first.begin(), programs.first.end());
    if (programs.first.size() < 1 || programs.first.front() != 0 || programs.first.back() != actions || !in_order)
        throw std::invalid_argument("first: expected ascending indices from 0 to the number of actions");
    if (!all_between(programs.sender, -1, actions) || !all_between(programs.room, -1, actions))
        throw std::invalid_argument("sender, room: expected indices of actions, or -1");
    if (!all_between(programs.room_passes, 0, 0x3fffffff)) throw std::invalid_argument("room_passes: out of range");
    if (programs.passes < 1 || programs.tracks < 1 || programs.ports < 1 || programs.tracks > programs.passes)
        throw std::invalid_argument("expected at least one pass, track and port, and no more tracks than passes");
    for (std::size_t action = 0; action < programs.room.size(); ++action)
        if (programs.sender[action] >= 0 && programs.room[action] < 0)
            throw std::invalid_argument("room: expected an action for each one that receives");
    if (links.hops == 0) return;
    const auto routes = static_cast<std::int64_t>(links.routes.size() / links.hops);
    if (!all_between(links.routes, -1, static_cast<std::int64_t>(links.bandwidth.size())))
        throw std::invalid_argument("routes: expected links, or -1");
    for (std::size_t entry = 0; entry < links.weights.size(); ++entry)
        if (links.weights[entry] < (links.routes[entry] < 0 ? 0 : 1))
            throw std::invalid_argument("weights: expected at least 1 for each link");
    for (std::size_t action = 0; action < links.route.size(); ++action)
        if (links.route[action] < -1 || links.route[action] >= routes ||
            (programs.sender[action] >= 0 && links.route[action] < 0))
            throw std::invalid_argument("route: expected a route for each action that receives");
}

}  // namespace unisono
