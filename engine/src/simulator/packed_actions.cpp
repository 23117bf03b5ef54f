#include "packed_actions.hpp"

#include <algorithm>
#include <stdexcept>

namespace unisono {

namespace {

bool is_time(double seconds) { return seconds >= 0 && seconds < never; }

}  // namespace

PackedActions::PackedActions(const SimulatedPrograms& programs)
    : count_(programs.sender.size()), first_of_last_(programs.passes > 1 ? count_ : 0),
      last_pass_(programs.passes - 1) {
    if (count_ >= 0x7fffffff || programs.passes >= 0x3fffffff) throw std::invalid_argument("too many actions");
    actions_.resize(first_of_last_ + count_);
    find_readers(programs);
    if (first_of_last_ > 0) pack(programs, 0, &PerPass::whole);
    pack(programs, first_of_last_, &PerPass::last);
}

// Sets `readers_count` and `reader` of the actions of the last pass.
void PackedActions::find_readers(const SimulatedPrograms& programs) {
    PackedAction* const actions = actions_.data() + first_of_last_;
    bool has_lists = false;
    for (std::size_t action = 0; action < count_; ++action) {
        if (programs.sender[action] < 0) continue;
        PackedAction& sender = actions[programs.sender[action]];
        sender.reader = static_cast<std::uint32_t>(action);
        if (++sender.readers_count > 1) has_lists = true;
    }
    if (!has_lists) return;
    std::uint32_t total = 0;
    for (std::size_t action = 0; action < count_; ++action) {
        if (actions[action].readers_count < 2) continue;
        actions[action].reader = total;
        total += actions[action].readers_count;
    }
    readers_.resize(total);
    std::vector<std::uint32_t> next(count_, 0);
    for (std::size_t action = 0; action < count_; ++action) {
        if (programs.sender[action] < 0) continue;
        const PackedAction& sender = actions[programs.sender[action]];
        if (sender.readers_count < 2) continue;
        readers_[sender.reader + next[programs.sender[action]]++] = static_cast<std::uint32_t>(action);
    }
}

void PackedActions::pack(const SimulatedPrograms& programs, std::size_t first,
                         std::span<const double> PerPass::* pass) {
    const auto busy = programs.busy_s.*pass, leaving = programs.leaving_s.*pass;
    const auto occupied = programs.occupied_s.*pass, rendezvous = programs.rendezvous_s.*pass;
    bool are_times = true;
    for (std::size_t unit = 0; unit + 1 < programs.first.size(); ++unit)
        for (auto action = static_cast<std::size_t>(programs.first[unit]);
             action < static_cast<std::size_t>(programs.first[unit + 1]); ++action) {
            PackedAction& to = actions_[first + action];
            const PackedAction& last = actions_[first_of_last_ + action];
            to.busy_s = busy[action];
            to.leaving_s = leaving[action];
            to.occupied_s = occupied[action];
            to.rendezvous_s = rendezvous[action];
            to.flight_s = programs.flight_s[action];
            to.unit = static_cast<std::uint32_t>(unit);
            to.sender = programs.sender[action] < 0 ? no_action : static_cast<std::uint32_t>(programs.sender[action]);
            if (!programs.room.empty()) {
                to.room = static_cast<std::uint32_t>(programs.room[action]);
                to.room_passes = static_cast<std::uint32_t>(programs.room_passes[action]);
            }
            to.sends = programs.sends[action] != 0;
            to.readers_count = last.readers_count;
            to.reader = last.reader;
            are_times &= is_time(to.busy_s) & is_time(to.leaving_s) & is_time(to.occupied_s) & is_time(to.flight_s) &
                         (to.rendezvous_s < never);
            has_rendezvous_ |= to.rendezvous_s >= 0;
        }
    if (!are_times) throw std::invalid_argument("expected times that are finite and not negative");
}

}  // namespace unisono
