#include "unisono/survivors.hpp"

#include <algorithm>
#include <thread>

#include "unisono/endpoint.hpp"

namespace unisono {

namespace {

using std::chrono::microseconds;

// Ranks arrive within milliseconds of each other, and then look again less often.
constexpr Nanoseconds shortest_nap = microseconds(50);
constexpr Nanoseconds longest_nap = microseconds(2000);
constexpr std::uint32_t word_bits = 64;

}  // namespace

std::optional<Survivors> SurvivorVote::agree(Deadline deadline, const Reserve& reserve) {
    Board& mine = endpoint_.board(endpoint_.settings.rank);
    mine.vote.store(Vote::posted);
    for (Nanoseconds nap = shortest_nap;; nap = std::min(2 * nap, longest_nap)) {
        if (auto found = result()) return found;
        const bool is_late = Clock::now() >= deadline.ends;  // read first: a vote that was posted in time counts
        const Tally tally = count_votes();
        if (tally.all_settled || is_late) {
            propose(tally.members, reserve);
            continue;
        }
        if (endpoint_.interrupted && endpoint_.interrupted()) {
            mine.vote.store(Vote::withdrawn);
            return {};
        }
        std::this_thread::sleep_for(nap);
    }
}

SurvivorVote::Tally SurvivorVote::count_votes() const {
    const std::uint32_t size = endpoint_.settings.geometry.size;
    std::vector<bool> has_ended(size);
    for (const std::uint32_t rank : endpoint_.lost_ranks()) has_ended[rank] = true;
    Tally tally;
    for (std::uint32_t rank = 0; rank < size; ++rank) {
        const Board& board = endpoint_.board(rank);
        const Vote vote = board.vote.load();
        const bool has_left = has_ended[rank] || board.closed.load() != 0;
        if (vote == Vote::posted && !has_left) tally.members.push_back(rank);
        if (vote == Vote::none && !has_left) tally.all_settled = false;
    }
    return tally;
}

// A rank proposes once: afterwards there is a decision.
void SurvivorVote::propose(const std::vector<std::uint32_t>& members, const Reserve& reserve) {
    Board::Proposal& proposal = endpoint_.board(endpoint_.settings.rank).proposal;
    proposal.offset = reserve(static_cast<std::uint32_t>(members.size()));
    std::fill(std::begin(proposal.members), std::end(proposal.members), 0);
    for (const std::uint32_t rank : members) proposal.members[rank / word_bits] |= 1ULL << (rank % word_bits);
    std::uint32_t none = 0;
    decided_.compare_exchange_strong(none, endpoint_.settings.rank + 1);
}

std::optional<Survivors> SurvivorVote::result() const {
    const std::uint32_t decided = decided_.load();
    if (decided == 0) return {};
    const Board::Proposal& proposal = endpoint_.board(decided - 1).proposal;
    Survivors found;
    found.offset = proposal.offset;
    for (std::uint32_t rank = 0; rank < endpoint_.settings.geometry.size; ++rank)
        if ((proposal.members[rank / word_bits] >> (rank % word_bits) & 1) != 0) found.members.push_back(rank);
    return found;
}

bool SurvivorVote::excludes(std::uint32_t rank) const {
    const auto found = result();
    return found && !std::binary_search(found->members.begin(), found->members.end(), rank);
}

// ---- the endpoint ----------------------------------------------------------------------------------------------

void Endpoint::break_to_shrink() {
    break_with(Fault::aborted, static_cast<int>(settings.rank),
               FaultMessage("shrinks").with_value("rank", own_value()));
}

std::optional<Survivors> Endpoint::agree_on_survivors(Endpoint& first, Nanoseconds timeout) {
    return survivor_vote_->agree(deadline_after(timeout), [&](std::uint32_t size) {
        Geometry next = settings.geometry;
        next.size = size;
        return first.reserve_space(Layout(next).bytes());
    });
}

bool Endpoint::settle_growth(std::uint64_t attempt, bool success) {
    std::uint64_t seen = control_->growth.load();
    while (seen / 2 < attempt && !control_->growth.compare_exchange_weak(seen, 2 * attempt + (success ? 1 : 0))) {
    }
    return control_->growth.load() == 2 * attempt + 1;
}

void Endpoint::meet(Nanoseconds timeout) {
    const Deadline deadline = deadline_after(timeout);
    board(settings.rank).arrived.store(1, std::memory_order_release);
    wake_host();
    for (std::uint32_t peer = 0; peer < settings.geometry.size; ++peer)
        wait([&] { return board(peer).arrived.load(std::memory_order_acquire) != 0; }, {peer, 0, deadline, false});
}

}  // namespace unisono
