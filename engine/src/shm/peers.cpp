#include "unisono/peers.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace unisono {

namespace {

int open_process(int process) {
#if defined(SYS_pidfd_open)
    return static_cast<int>(syscall(SYS_pidfd_open, process, 0));
#else
    (void)process;
    return -1;
#endif
}

}  // namespace

Peers::Peers(const std::vector<int>& processes, std::uint32_t own_rank)
    : processes_(processes), descriptors_(processes.size(), -1), own_rank_(own_rank) {
    for (std::size_t rank = 0; rank < processes.size(); ++rank)
        if (rank != own_rank && processes[rank] > 0 && processes[rank] != getpid())
            descriptors_[rank] = open_process(processes[rank]);
}

Peers::~Peers() {
    for (const int descriptor : descriptors_)
        if (descriptor >= 0) ::close(descriptor);
}

std::vector<std::uint32_t> Peers::lost() const {
    std::vector<pollfd> asked(descriptors_.size());
    for (std::size_t rank = 0; rank < asked.size(); ++rank) asked[rank] = {descriptors_[rank], POLLIN, 0};
    ::poll(asked.data(), asked.size(), 0);
    std::vector<std::uint32_t> found;
    for (std::size_t rank = 0; rank < asked.size(); ++rank) {
        if (rank == own_rank_ || processes_[rank] <= 0) continue;
        // Without a descriptor the process id must do; it does not detect a process that its parent has not reaped.
        const bool gone = descriptors_[rank] >= 0 ? (asked[rank].revents & (POLLIN | POLLHUP | POLLERR)) != 0
                                                  : ::kill(processes_[rank], 0) != 0 && errno == ESRCH;
        if (gone) found.push_back(static_cast<std::uint32_t>(rank));
    }
    return found;
}

}  // namespace unisono
