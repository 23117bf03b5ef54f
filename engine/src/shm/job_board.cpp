#include "unisono/job_board.hpp"

#include <unistd.h>

#include <cstddef>
#include <fstream>
#include <iterator>
#include <string>

namespace unisono {

namespace {

// Returns the offset of an entry in the file. The offset of a board does not depend on the number of ranks.
off_t entry_offset(std::uint32_t rank) {
    return static_cast<off_t>(Layout({1, 1, page_bytes, 64}).board(rank) + offsetof(Board, job_entry));
}

}  // namespace

void JobBoard::announce(std::uint32_t peer) const {
    if (const auto known = read(own_rank_); known && known->waits_for == 0)
        write({::getpid(), static_cast<std::int32_t>(peer) + 1});
}

void JobBoard::withdraw(std::uint32_t peer) const {
    if (const auto known = read(own_rank_); known && known->waits_for == static_cast<std::int32_t>(peer) + 1)
        write({known->process, 0});
}

std::optional<JobBoard::Entry> JobBoard::entry(std::uint32_t rank) const {
    const auto known = read(rank);
    if (!known || known->process == 0) return {};
    Entry entry{known->process, {}};
    if (known->waits_for > 0) entry.waits_for = static_cast<std::uint32_t>(known->waits_for - 1);
    return entry;
}

std::optional<Board::JobEntry> JobBoard::read(std::uint32_t rank) const {
    Board::JobEntry entry;
    if (file_ < 0 || ::pread(file_, &entry, sizeof entry, entry_offset(rank)) != sizeof entry) return {};
    return entry;
}

// If threads of this process write at the same time, the announcement of one of them is lost until its next one.
void JobBoard::write(Board::JobEntry entry) const {
    if (::pwrite(file_, &entry, sizeof entry, entry_offset(own_rank_)) != sizeof entry) return;  // it only informs
}

bool is_stopped(int process) {
    if (process <= 0) return false;
    std::ifstream file("/proc/" + std::to_string(process) + "/stat");
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    const std::size_t name_end = text.rfind(')');  // the name of the program may contain spaces and brackets
    if (name_end == std::string::npos || name_end + 2 >= text.size()) return false;
    return text[name_end + 2] == 'T' || text[name_end + 2] == 't';
}

}  // namespace unisono
