#include "unisono/rank_names.hpp"

#include <algorithm>
#include <utility>

namespace unisono {

namespace {

constexpr std::size_t most_listed = 16;

bool counts_up_from_zero(const std::vector<std::uint32_t>& ranks) {
    for (std::size_t rank = 0; rank < ranks.size(); ++rank)
        if (ranks[rank] != rank) return false;
    return true;
}

}  // namespace

// Ranks {0, 1} of a job of four are a group as well, but their numbers need no explanation.
RankNames::RankNames(std::vector<std::uint32_t> job_ranks) : job_ranks_(std::move(job_ranks)) {
    if (counts_up_from_zero(job_ranks_)) job_ranks_.clear();
}

int RankNames::job_rank(int rank) const {
    if (rank < 0 || static_cast<std::size_t>(rank) >= job_ranks_.size()) return rank;
    return static_cast<int>(job_ranks_[static_cast<std::size_t>(rank)]);
}

std::string RankNames::value(std::uint32_t rank) const {
    const std::string number = std::to_string(rank);
    if (job_ranks_.empty()) return "@" + number;
    return "@" + std::to_string(job_rank(static_cast<int>(rank))) + "/" + number;
}

std::string RankNames::value(std::uint32_t rank, int process) const {
    return value(rank) + (job_ranks_.empty() ? "//" : "/") + std::to_string(process);
}

std::string RankNames::group() const {
    if (job_ranks_.empty()) return {};
    std::string listed;
    for (std::size_t rank = 0; rank < std::min(job_ranks_.size(), most_listed); ++rank)
        listed += (rank > 0 ? ", " : "") + std::to_string(job_ranks_[rank]);
    const bool all_listed = job_ranks_.size() <= most_listed;
    FaultMessage message(all_listed ? "group" : "large_group");
    message.with("ranks", listed);
    if (!all_listed) message.with("count", job_ranks_.size());
    return message.text();
}

std::string RankNames::listed(const std::vector<std::uint32_t>& ranks) const {
    std::string text;
    for (std::size_t index = 0; index < std::min(ranks.size(), most_listed); ++index)
        text += (index > 0 ? ", " : "") + std::to_string(job_rank(static_cast<int>(ranks[index])));
    return ranks.size() > most_listed ? text + ", ..." : text;
}

}  // namespace unisono
