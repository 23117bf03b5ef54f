// The ranks of a communicator as fault messages name them.
//
// A communicator numbers its ranks from 0, even if it covers only a part of a job. Users know processes by their rank
// in the job, so messages about such a communicator give both numbers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "unisono/fault_message.hpp"

namespace unisono {

class RankNames {
  public:
    // `job_ranks[r]` is the rank in the job of rank r of the communicator. If empty, both are the same.
    explicit RankNames(std::vector<std::uint32_t> job_ranks = {});

    // Returns the rank in the job; -1 (no particular rank) stays -1.
    int job_rank(int rank) const;
    // Returns the value of a rank in a FaultMessage: "@3", or "@3/1" for rank 3 of the job that is rank 1 of its group.
    std::string value(std::uint32_t rank) const;
    // The same with the process: "@3//5490" or "@3/1/5490".
    std::string value(std::uint32_t rank, int process) const;
    // Returns a detail that lists the group; an empty text if the ranks are numbered as in the job.
    std::string group() const;
    // Returns these ranks of the communicator as ranks of the job, with commas; of a long list, the first ones.
    std::string listed(const std::vector<std::uint32_t>& ranks) const;

  private:
    std::vector<std::uint32_t> job_ranks_;  // empty if the ranks are numbered as in the job
};

}  // namespace unisono
