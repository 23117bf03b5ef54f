// The agreement of the survivors of a broken communicator on the members of the next one (docs/adr/0071).
//
// It uses only the memory of the broken communicator: a vote and a proposal on each board, and one word of the control
// block, which a compare-and-swap changes once. That rank's proposal is in effect.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "unisono/memory.hpp"
#include "unisono/waiting.hpp"

namespace unisono {

class Endpoint;

struct Survivors {
    std::vector<std::uint32_t> members;  // ranks of the broken communicator, in ascending order
    std::uint64_t offset = 0;            // of the next communicator in the file
};

class SurvivorVote {
  public:
    // `decided` is the word in the control block.
    SurvivorVote(Endpoint& endpoint, std::atomic<std::uint32_t>& decided) : endpoint_(endpoint), decided_(decided) {}

    // Takes part in the agreement and returns its result, which may exclude this rank; nothing if the user interrupts
    // it. `reserve` returns the offset of new memory for a number of ranks.
    using Reserve = std::function<std::uint64_t(std::uint32_t)>;
    std::optional<Survivors> agree(Deadline deadline, const Reserve& reserve);
    // Returns the result; nothing if there is none yet.
    std::optional<Survivors> result() const;
    bool excludes(std::uint32_t rank) const;

  private:
    // The state of the other ranks, as far as it matters for the agreement.
    struct Tally {
        std::vector<std::uint32_t> members;  // have posted, and have not ended
        bool all_settled = true;             // no further rank can post
    };
    Tally count_votes() const;
    void propose(const std::vector<std::uint32_t>& members, const Reserve& reserve);

    Endpoint& endpoint_;
    std::atomic<std::uint32_t>& decided_;  // the rank whose proposal is in effect, plus one; 0: none yet
};

}  // namespace unisono
