// Detects that the processes of other ranks have ended.
#pragma once

#include <cstdint>
#include <vector>

namespace unisono {

class Peers {
  public:
    Peers() = default;
    // `processes[r]` is the process id of rank r; 0 for a rank of another host. Those, and the rank's own process, are
    // not checked.
    Peers(const std::vector<int>& processes, std::uint32_t own_rank);
    ~Peers();
    Peers(const Peers&) = delete;
    Peers& operator=(const Peers&) = delete;

    // Returns the ranks whose processes have ended.
    std::vector<std::uint32_t> lost() const;

  private:
    std::vector<int> processes_;
    // A descriptor of each process (pidfd), which unlike a process id is never reused. -1: our own process, or the
    // kernel has no such descriptors.
    std::vector<int> descriptors_;
    std::uint32_t own_rank_ = 0;
};

}  // namespace unisono
