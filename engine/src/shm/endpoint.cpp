#include "unisono/endpoint.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <system_error>
#include <utility>

namespace unisono {

namespace {

// Looks before the clock is asked for the first time, and how long one of them takes at the most.
constexpr int most_looks = 200;
constexpr int fewest_looks = 1;
// Yields before the clock is asked, where a core has several ranks.
constexpr int yields_at_once = 20;
constexpr Nanoseconds longest_look{50};

void give_memory(int file, std::uint64_t offset, std::uint64_t bytes) {
    while (::fallocate(file, 0, static_cast<off_t>(offset), static_cast<off_t>(bytes)) != 0) {
        if (errno == EINTR) continue;
        throw std::system_error(errno, std::generic_category(),
                                "no shared memory for " + std::to_string(bytes) + " bytes");
    }
}

// At an address that is a multiple of a huge page, as the offset in the file is: else none could be used.
std::byte* map_memory(const Settings& settings, std::size_t bytes) {
    void* room = ::mmap(nullptr, bytes + huge_page_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "no address space for " + std::to_string(bytes) + " bytes");
    auto* const begin = static_cast<std::byte*>(room);
    const std::size_t before = -reinterpret_cast<std::uintptr_t>(room) % huge_page_bytes;
    void* memory = ::mmap(begin + before, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, settings.file,
                          static_cast<off_t>(settings.offset));
    if (memory == MAP_FAILED) {
        const int error = errno;
        ::munmap(room, bytes + huge_page_bytes);
        throw std::system_error(error, std::generic_category(),
                                "no address space for " + std::to_string(bytes) + " bytes");
    }
    if (before > 0) ::munmap(begin, before);
    if (before < huge_page_bytes) ::munmap(begin + before + bytes, huge_page_bytes - before);
    ::madvise(memory, bytes, MADV_DONTFORK);  // a forked child is not a rank
    return static_cast<std::byte*>(memory);
}

// Asks for huge pages. Where there are none, small ones do.
void use_huge_pages(std::byte* begin, std::size_t bytes) {
#ifndef MADV_COLLAPSE  // Linux 6.1; the C library may be older
    constexpr int MADV_COLLAPSE = 25;
#endif
    ::madvise(begin, bytes, MADV_HUGEPAGE);
    ::madvise(begin, bytes, MADV_COLLAPSE);
}

}  // namespace

Endpoint::Endpoint(Settings given)
    : settings(std::move(given)), layout(settings.geometry), peers_(settings.processes, settings.rank),
      quick_looks_(static_cast<int>(
          std::clamp<Nanoseconds::rep>(settings.wait_policy.spin / longest_look, fewest_looks, most_looks))),
      first_yields_(settings.wait_policy.spin.count() > 0 ? 0 : yields_at_once), has_fence_(join_fence()) {
    if (settings.rank >= settings.geometry.size || settings.processes.size() != settings.geometry.size ||
        settings.geometry.depth < 4 || settings.geometry.staging_bytes < page_bytes || settings.geometry.transfer_bytes < 64)
        throw std::invalid_argument("impossible settings of an endpoint");
    const Layout::Range books = layout.before_channels();
    give_memory(settings.file, settings.offset, books.bytes);
    base_ = settings.memory != nullptr ? settings.memory : map_memory(settings, layout.bytes());
    control_ = reinterpret_cast<Control*>(base_);
    opened_bytes_ = books.bytes;
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
        give_memory(settings.file, settings.offset + range.offset, range.bytes);
    } catch (const std::system_error& error) {
        fail(Fault::no_memory, static_cast<int>(settings.rank),
             own_name() + ": " + error.what() + "; " + more_memory_advice);
    }
    if (range.offset % huge_page_bytes == 0 && range.bytes % huge_page_bytes == 0) use_huge_pages(at(range.offset), range.bytes);
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
    board(settings.rank).closed.store(1, std::memory_order_release);
    for (std::uint32_t rank = 0; rank < settings.geometry.size; ++rank) wake_if_asleep(rank);
    if (control_->closed.fetch_add(1) + 1 == settings.geometry.size)
        ::fallocate(settings.file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                    static_cast<off_t>(settings.offset + layout.before_channels().bytes),
                    static_cast<off_t>(layout.bytes() - layout.before_channels().bytes));
}

// ---- what a rank tells the others ------------------------------------------------------------------------------

std::uint64_t Endpoint::enter(std::uint64_t fingerprint, const std::string& text, std::uint64_t text_owner) {
    Board& mine = board(settings.rank);
    std::uint32_t slot = static_cast<std::uint32_t>(text_owner % remembered_texts);
    if (text_owners_[slot] != text_owner) {
        text_owners_[slot] = text_owner;
        std::strncpy(mine.texts[slot], text.c_str(), text_bytes - 1);
    }
    ++call_;
    fingerprint_ = fingerprint;
    CallRecord& record = mine.recent[call_ % remembered_calls];
    record.number.store(0, std::memory_order_relaxed);
    record.fingerprint.store(fingerprint, std::memory_order_release);
    record.text.store(slot, std::memory_order_relaxed);
    record.number.store(call_, std::memory_order_release);
    mine.calls.store(call_, std::memory_order_release);
    return call_;
}

std::string Endpoint::call_of(std::uint32_t rank, std::uint64_t number) const {
    const CallRecord& record = board(rank).recent[number % remembered_calls];
    if (record.number.load(std::memory_order_acquire) != number) return "something else";
    return board(rank).texts[record.text.load(std::memory_order_relaxed) % remembered_texts];
}

void Endpoint::check_same_call(std::uint32_t peer) {
    const CallRecord& record = board(peer).recent[call_ % remembered_calls];
    if (record.number.load(std::memory_order_acquire) != call_) return;  // not there yet, or long past
    const std::uint64_t theirs = record.fingerprint.load(std::memory_order_acquire);
    if (record.number.load(std::memory_order_acquire) == call_ && theirs != fingerprint_) report_mismatch(peer);
}

void Endpoint::report_mismatch(std::uint32_t peer) {
    fail(Fault::mismatch, static_cast<int>(peer),
         "call " + std::to_string(call_) + " of this communicator differs between ranks: " + own_name() + " called " +
             call_of(settings.rank, call_) + "; " + names.name(peer) + " called " + call_of(peer, call_) +
             ". Every rank must make the same calls in the same order");
}

// ---- faults ----------------------------------------------------------------------------------------------------

FaultReport Endpoint::break_with(Fault fault, int culprit, const std::string& text) {
    std::uint32_t whole = 0;
    if (control_->broken.compare_exchange_strong(whole, 1)) {
        control_->report.fault = fault;
        control_->report.culprit = names.job_rank(culprit);
        std::strncpy(control_->report.text, (text + names.note()).c_str(), sizeof control_->report.text - 1);
        control_->broken.store(2, std::memory_order_release);
        // One line, written at once: the lines of several ranks do not mix.
        if (settings.fault_log >= 0)
            ::dprintf(settings.fault_log, "%u %d\n", static_cast<unsigned>(fault), names.job_rank(culprit));
        for (std::uint32_t rank = 0; rank < settings.geometry.size; ++rank) wake_if_asleep(rank);
    }
    return fault_report();
}

FaultReport Endpoint::fault_report() const {
    // Whoever began to write a report may have died over it: do not wait for ever.
    for (int look = 0; look < 1000; ++look) {
        const std::uint32_t state = control_->broken.load(std::memory_order_acquire);
        if (state == 0) return {};
        if (state == 2) return control_->report;
        ::usleep(100);
    }
    FaultReport unknown;
    unknown.fault = Fault::peer_lost;
    std::strncpy(unknown.text, "a rank died while it reported a failure", sizeof unknown.text - 1);
    return unknown;
}

void Endpoint::fail(Fault fault, int culprit, const std::string& text) { throw Failure(break_with(fault, culprit, text)); }

std::thread Endpoint::start_thread(std::function<void()> work) {
    try {
        return std::thread(std::move(work));
    } catch (const std::system_error& error) {
        fail(Fault::no_memory, static_cast<int>(settings.rank),
             own_name() + " could not start a thread for calls in the background: " + error.code().message() +
                 "; raise the limit on processes (ulimit -u, or the pids limit of the container) or on address space "
                 "(ulimit -v)");
    }
}

}  // namespace unisono
