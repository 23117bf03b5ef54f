// The actions of a simulation, arranged for the event loop: all that it needs of an action is on one cache line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "large_vector.hpp"
#include "unisono/simulation.hpp"

namespace unisono {

inline constexpr std::uint32_t no_action = 0xffffffff;

struct alignas(64) PackedAction {
    double busy_s, leaving_s, occupied_s, rendezvous_s, flight_s;
    std::uint32_t unit, sender;       // sender: no_action if it receives nothing
    std::uint32_t room, room_passes;  // as in SimulatedPrograms
    std::uint32_t readers_count : 31, sends : 1;
    std::uint32_t reader;  // the only action that receives its message, or where a list of them begins
};

// The values of whole passes and of the last one; there is one set if there is one pass.
class PackedActions {
  public:
    // Throws std::invalid_argument if there are too many actions, or if a time is not a finite number.
    explicit PackedActions(const SimulatedPrograms& programs);

    const PackedAction& operator()(std::uint32_t pass, std::uint32_t action) const {
        return actions_[(pass == last_pass_ ? first_of_last_ : 0) + action];
    }
    std::span<const std::uint32_t> readers(const PackedAction& action) const {
        const auto* const first = action.readers_count == 1 ? &action.reader : readers_.data() + action.reader;
        return {first, action.readers_count};
    }
    // Loads the line of an action that is needed soon; one past the end does no harm.
    void prefetch(std::uint32_t pass, std::uint32_t action) const {
        __builtin_prefetch(actions_.data() + (pass == last_pass_ ? first_of_last_ : 0) + action);
    }
    std::size_t size() const { return count_; }
    bool has_rendezvous() const { return has_rendezvous_; }

  private:
    void find_readers(const SimulatedPrograms& programs);
    void pack(const SimulatedPrograms& programs, std::size_t first, std::span<const double> PerPass::* pass);

    const std::size_t count_, first_of_last_;
    const std::uint32_t last_pass_;
    LargeVector<PackedAction> actions_;
    std::vector<std::uint32_t> readers_;  // of actions whose message is received by several
    bool has_rendezvous_ = false;
};

}  // namespace unisono
