// The ranks of a test: processes that share a file, or threads of one process that share its memory.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "unisono/endpoint.hpp"

namespace unisono::tests {

// The shared memory of a few communicators, one after the other in an anonymous file.
class SharedMemory {
  public:
    explicit SharedMemory(const Geometry& geometry, std::size_t communicators = 1);
    ~SharedMemory();
    SharedMemory(const SharedMemory&) = delete;
    SharedMemory& operator=(const SharedMemory&) = delete;

    // For a rank that is a process and maps the memory itself.
    Settings for_process(std::uint32_t rank, const std::vector<int>& processes, std::size_t communicator = 0) const;
    // For ranks that are threads. All of them use one mapping, so that the thread sanitizer sees both ends of every
    // channel at the same addresses.
    std::vector<Settings> for_threads();

    const Geometry geometry;

  private:
    std::size_t bytes_;  // of one communicator
    std::size_t communicators_;
    int file_;
    std::byte* mapped_ = nullptr;
};

// Returns whether there is a core for every rank.
bool enough_cores(std::uint32_t size);

// Runs `body(rank, processes)` in `size` processes, each pinned to a separate core if there are enough. Returns whether
// all of them succeeded.
bool run_in_processes(std::uint32_t size,
                      const std::function<void(std::uint32_t rank, const std::vector<int>& processes)>& body);

// Runs `body(rank)` in `size` threads and waits for them.
void run_in_threads(std::uint32_t size, const std::function<void(std::uint32_t rank)>& body);

}  // namespace unisono::tests
