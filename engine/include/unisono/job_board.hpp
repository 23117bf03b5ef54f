// Announces which rank each process of a host waits for, in any of its communicators.
//
// A rank that waits looks only at the boards of one communicator, but the rank that it waits for may be held up in
// another one. So a rank that has waited for a while also announces its wait on its board in the first communicator of
// the file. Endpoints of other communicators do not map that board: they read and write it through the file.
#pragma once

#include <cstdint>
#include <optional>

#include "unisono/memory.hpp"

namespace unisono {

class JobBoard {
  public:
    // `file`: descriptor of the shared memory; -1: nothing is announced. Ranks are those of the first communicator.
    JobBoard(int file, std::uint32_t own_rank) : file_(file), own_rank_(own_rank) {}

    // Announces that this process waits for a rank, unless it has announced another wait.
    void announce(std::uint32_t peer) const;
    void withdraw(std::uint32_t peer) const;

    struct Entry {
        int process;
        std::optional<std::uint32_t> waits_for;
    };
    // Returns the entry of a rank; nothing if the rank is not on this host.
    std::optional<Entry> entry(std::uint32_t rank) const;

  private:
    std::optional<Board::JobEntry> read(std::uint32_t rank) const;
    void write(Board::JobEntry entry) const;

    int file_;
    std::uint32_t own_rank_;
};

// Returns whether a process is stopped, by a signal or a debugger; false if that is not known.
bool is_stopped(int process);

}  // namespace unisono
