// Whether the processes of the other ranks still live.
#pragma once

#include <cstdint>
#include <vector>

namespace unisono {

class Peers {
  public:
    Peers() = default;
    // `processes[r]` is the process number of rank r. A rank's own process is never looked at.
    Peers(const std::vector<int>& processes, std::uint32_t own_rank);
    ~Peers();
    Peers(const Peers&) = delete;
    Peers& operator=(const Peers&) = delete;

    // The ranks whose processes have ended.
    std::vector<std::uint32_t> lost() const;

  private:
    std::vector<int> processes_;
    // A descriptor of each process: unlike its number it can never mean another process. -1: our own, or the kernel
    // has none.
    std::vector<int> descriptors_;
    std::uint32_t own_rank_ = 0;
};

}  // namespace unisono
