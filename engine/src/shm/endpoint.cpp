#include "unisono/endpoint.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace unisono {

namespace {

// The number of looks before the clock is first read, and the longest time that one look takes.
constexpr int most_looks = 200;
constexpr int fewest_looks = 1;
constexpr Nanoseconds longest_look{50};
// The number of yields before the clock is first read, if ranks share cores.
constexpr int yields_at_once = 20;

// Maps the file at a multiple of the size of a huge page, like its offset in the file: otherwise huge pages are
// impossible.
std::byte* map_memory(const Settings& settings, std::size_t bytes) {
    void* room =
        ::mmap(nullptr, bytes + huge_page_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED) throw MemoryRefused{"no_address_space", bytes, errno};
    auto* const begin = static_cast<std::byte*>(room);
    const std::size_t before = -reinterpret_cast<std::uintptr_t>(room) % huge_page_bytes;
    void* memory = ::mmap(begin + before, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, settings.file,
                          static_cast<off_t>(settings.offset));
    if (memory == MAP_FAILED) {
        const int error = errno;
        ::munmap(room, bytes + huge_page_bytes);
        throw MemoryRefused{"no_address_space", bytes, error};
    }
    if (before > 0) ::munmap(begin, before);
    if (before < huge_page_bytes) ::munmap(begin + before + bytes, huge_page_bytes - before);
    ::madvise(memory, bytes, MADV_DONTFORK);  // a forked child is not a rank
    return static_cast<std::byte*>(memory);
}

// Requests huge pages. If the system has none, small pages are used.
void use_huge_pages(std::byte* begin, std::size_t bytes) {
#ifndef MADV_COLLAPSE  // Linux 6.1; the C library may be older
    constexpr int MADV_COLLAPSE = 25;
#endif
    ::madvise(begin, bytes, MADV_HUGEPAGE);
    ::madvise(begin, bytes, MADV_COLLAPSE);
}

}  // namespace

Endpoint::Endpoint(Settings requested)
    : settings(std::move(requested)), layout(settings.geometry), peers_(settings.processes, settings.rank),
      job_board_(settings.file, settings.first_rank(settings.rank)),
      quick_looks_(static_cast<int>(
          std::clamp<Nanoseconds::rep>(settings.wait_policy.spin / longest_look, fewest_looks, most_looks))),
      first_yields_(settings.wait_policy.spin.count() > 0 ? 0 : yields_at_once), has_fence_(join_fence()) {
    if (settings.rank >= settings.geometry.size || settings.processes.size() != settings.geometry.size ||
        settings.geometry.depth < 4 || settings.geometry.staging_bytes < page_bytes ||
        settings.geometry.transfer_bytes < 64 || settings.geometry.tracks < 1 ||
        (!settings.first_ranks.empty() && settings.first_ranks.size() != settings.geometry.size))
        throw std::invalid_argument("impossible settings of an endpoint");
    const Layout::Range books = layout.before_channels();
    allocate_shared(settings.file, settings.offset, books.bytes);
    base_ = settings.memory != nullptr ? settings.memory : map_memory(settings, layout.bytes());
    control_ = reinterpret_cast<Control*>(base_);
    survivor_vote_.emplace(*this, control_->decided);
    opened_bytes_ = books.bytes;
    if (settings.offset == 0) board(settings.rank).job_entry.process = ::getpid();
    if (settings.courier == nullptr) return;
    if (settings.far.size() != settings.geometry.size || settings.courier_ranks.size() != settings.geometry.size)
        throw std::invalid_argument("impossible far ranks of an endpoint");
    far_ = settings.courier->join(*this);
    quick_looks_ = fewest_looks;  // a message from another host arrives only if a rank looks for it
}

Endpoint::~Endpoint() {
    close();
    if (settings.memory == nullptr && base_ != nullptr) ::munmap(base_, layout.bytes());
}

void Endpoint::open(Layout::Range range) {
    const std::lock_guard lock(opening_);
    std::size_t& known = opened_[range.offset];
    if (known >= range.bytes) return;
    try {
        allocate_shared(settings.file, settings.offset + range.offset, range.bytes);
    } catch (const MemoryRefused& refused) {
        fail(Fault::no_memory, static_cast<int>(settings.rank), refused.message(own_value()));
    }
    if (range.offset % huge_page_bytes == 0 && range.bytes % huge_page_bytes == 0)
        use_huge_pages(at(range.offset), range.bytes);
    opened_bytes_ += range.bytes - known;
    known = range.bytes;
}

std::uint64_t Endpoint::reserve_space(std::uint64_t bytes) {
    std::uint64_t none = 0;
    control_->file_end.compare_exchange_strong(none, layout.bytes());
    return control_->file_end.fetch_add(bytes);
}

void Endpoint::close() {
    if (closed_) return;
    closed_ = true;
    board(settings.rank).closed.store(1);
    wake_host();
    if (far_) far_->leave();
    if (all_have_left())
        ::fallocate(settings.file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                    static_cast<off_t>(settings.offset + layout.before_channels().bytes),
                    static_cast<off_t>(layout.bytes() - layout.before_channels().bytes));
}

// Returns whether no rank of this host uses the memory any more. Ranks that ended, or that the others have excluded,
// never close it.
bool Endpoint::all_have_left() const {
    std::vector<bool> left(settings.geometry.size);
    for (const std::uint32_t rank : peers_.lost()) left[rank] = true;
    const auto survivors = survivor_vote_->result();
    for (std::uint32_t rank = 0; rank < settings.geometry.size; ++rank) {
        if (settings.is_far(rank) || left[rank] || board(rank).closed.load() != 0) continue;
        if (!survivors || std::binary_search(survivors->members.begin(), survivors->members.end(), rank)) return false;
    }
    return true;
}

void Endpoint::open_far_channel(std::size_t channel) {
    const auto pair = layout.pair(channel);
    if (!pair) return;  // the channels to all stay inside a host
    const bool incoming = pair->to == settings.rank;
    const auto peer = static_cast<std::uint32_t>(incoming ? pair->from : pair->to);
    if (!settings.is_far(peer)) return;
    // This process writes there.
    if (pair->track == settings.geometry.tracks && incoming) open(layout.transfer_slots(pair->from, pair->to));
    far_->opened(peer, pair->track, incoming);
}

// ---- calls -----------------------------------------------------------------------------------------------------

std::uint64_t Endpoint::enter(std::uint64_t fingerprint, const std::string& text, std::uint64_t text_owner) {
    Board& mine = board(settings.rank);
    const auto slot = static_cast<std::uint32_t>(text_owner % remembered_texts);
    if (text_owners_[slot] != text_owner) {
        text_owners_[slot] = text_owner;
        std::strncpy(mine.texts[slot], text.c_str(), text_bytes - 1);
    }
    ++call_;
    fingerprint_ = fingerprint;
    mine.recent[call_ % remembered_calls].store({call_, fingerprint, slot});
    mine.calls.store(call_, std::memory_order_release);
    return call_;
}

void Endpoint::check_same_call(std::uint32_t peer, const NumberedCall& call) {
    const auto theirs = board(peer).recent[call.number % remembered_calls].load();
    if (!theirs || theirs->number != call.number) return;  // not entered yet, or overwritten since
    if (theirs->fingerprint != call.fingerprint) report_mismatch(peer, call);
}

}  // namespace unisono
