// The ranks of a test: processes that share a file, or threads of one process that share its memory.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "unisono/endpoint.hpp"

namespace unisono::tests {

// The shared memory of a few communicators, one after the other in a file without a name.
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

// Whether every rank can have a core of its own.
bool enough_cores(std::uint32_t size);

// Runs `body(rank, processes)` in as many processes, each kept on a core of its own if there are enough. Says whether
// all of them ended well.
bool run_in_processes(std::uint32_t size,
                      const std::function<void(std::uint32_t rank, const std::vector<int>& processes)>& body);

// Runs `body(rank)` in as many threads, and waits for them.
void run_in_threads(std::uint32_t size, const std::function<void(std::uint32_t rank)>& body);

}  // namespace unisono::tests
