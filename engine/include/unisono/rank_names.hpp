// How messages to people name ranks.
//
// A communicator numbers its ranks from 0, also where it is a part of a job. People know the processes by their rank in the
// job, so messages about a part give both numbers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace unisono {

class RankNames {
  public:
    // `job_ranks[r]` is the rank in the job of rank r of the communicator. Empty: both are the same.
    explicit RankNames(std::vector<std::uint32_t> job_ranks = {});

    // Of a rank of the communicator; -1 (no rank in particular) stays -1.
    int job_rank(int rank) const;
    // "rank 3", or "rank 3 of the job (rank 1 of its group)". `detail` goes into the parentheses.
    std::string name(std::uint32_t rank, const std::string& detail = {}) const;
    // A sentence that lists the group, to end a message with; empty where the numbers are those of the job.
    std::string note() const;

  private:
    std::vector<std::uint32_t> job_ranks_;  // empty where the numbers are those of the job
};

}  // namespace unisono
