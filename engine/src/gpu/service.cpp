// The part of GpuEndpoint that runs in its thread: it opens the memory that peers offer, and looks for faults.
//
// A kernel or a stream that waits for a peer cannot notice that the peer has died. The thread notices, breaks the
// communicator with the same report as a call on the processor, and tells the kernels to leave (*abort*).
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "unisono/gpu/gpu_endpoint.hpp"

namespace unisono::gpu {

namespace {

using std::chrono::milliseconds;

constexpr Nanoseconds look_every = milliseconds(100);
// The memory of a rank that is killed is freed some 40 ms later. Under MPS, a kernel of that rank that still uses it
// then ends the kernels of all ranks with an error, for good. (Measured on an H200: docs/adr/0060.)
constexpr Nanoseconds look_for_deaths_every = milliseconds(3);
constexpr Nanoseconds sweep_every = milliseconds(1000);
constexpr Nanoseconds longest_report = milliseconds(50);  // of a kernel, about where it waited
constexpr std::uint32_t far_ahead = 1 << 30;              // of every signal

}  // namespace

void GpuEndpoint::serve() {
    in_background = true;
    std::atomic<std::uint32_t>& bell = board_->head(rank()).bell;
    const SignOfLife sign_of_life(*board_, rank());
    try {
        const CurrentContext current = device_->enter();
        const CaptureAllowance allowance(driver_);  // for good: another thread may capture at any time
        Clock::time_point next_look = Clock::now() + look_every, next_sweep = Clock::now() + sweep_every;
        while (!stopping_) {
            const std::uint32_t seen = bell.load(std::memory_order_acquire);
            mappings_->open_offers();
            report_the_dead();
            Clock::time_point now = Clock::now();
            if (now >= next_look) {
                look();
                next_look = now + look_every;
            }
            if (now >= next_sweep || mappings_->has_withdrawn()) {
                const std::unique_lock lock(calls_, std::try_to_lock);
                if (lock && now >= next_sweep) {
                    registry_->withdraw_freed();
                    next_sweep = now + sweep_every;
                }
                if (lock) refresh_completed();
                // To close memory may wait for kernels, and they for peers, and those for this thread.
                if (lock && !has_work()) mappings_->close_withdrawn();
            }
            const bool idle = !has_work() && !captured_ && !(endpoint_.broken() && !aborted_);
            now = Clock::now();
            // Short enough that a call need not wake this thread, which would cost it a microsecond or more.
            const Nanoseconds nap = idle ? look_every : std::max<Nanoseconds>(next_look - now, milliseconds(1));
            asleep_ = true;
            if (!stopping_) futex_wait(bell, seen, nap);
            asleep_ = false;
        }
    } catch (const DriverError& error) {
        try {
            report_driver(error);
        } catch (const Failure&) {  // told to all ranks
        }
    }
}

// Runs in another thread, which never calls the driver: a call of the driver may wait for kernels, and those for a rank
// that has died, or has left a communicator that is broken.
void GpuEndpoint::watch_for_deaths() {
    std::atomic<std::uint32_t>& bell = board_->head(rank()).bell;
    std::uint64_t known = 0;  // bit r: rank r has died
    while (!stopping_) {
        const std::uint32_t seen = bell.load(std::memory_order_acquire);
        for (std::uint32_t peer = 0; peer < size(); ++peer) {
            if (peer == rank() || (known >> peer & 1) != 0 || !board_->has_died(peer)) continue;
            known |= std::uint64_t{1} << peer;
            set_abort_words({peer});
            board_->wake(rank());  // the service thread reports it
        }
        if (endpoint_.broken()) set_abort_words({});
        if (!stopping_) futex_wait(bell, seen, look_for_deaths_every);
    }
}

// Returns whether calls of this rank are not over. After a fault that remains so.
bool GpuEndpoint::has_work() const {
    const std::uint32_t enqueued = captured_ ? started() : enqueued_.load();
    if (enqueued != completed()) return true;
    const std::lock_guard lock(announced_mutex_);
    for (std::uint32_t peer = 0; peer < size(); ++peer)
        for (const bool sending : {true, false})
            if (lanes_[peer * 2 + (sending ? 0 : 1)].enqueued != word(progress_offset(sending, peer) + 4)) return true;
    return false;
}

// Returns the call that runs on the device, or was enqueued last. The calls of a CUDA graph are not told apart.
GpuEndpoint::Announced GpuEndpoint::running() const {
    const std::lock_guard lock(announced_mutex_);
    const std::uint32_t last = enqueued_.load();
    // In kernel mode, a kernel that reports a fault states how many calls were over.
    const bool told = options_.kernel_mode && word(offsetof(Mailbox, fault)) != Mailbox::none;
    const std::uint32_t number = captured_ ? last : told ? word(offsetof(Mailbox, calls)) + 1 : started();
    return announced_[(last - number < remembered ? number : last) % remembered];
}

// Returns the calls of which any may be the one that waits. In kernel mode, the calls that were enqueued before the
// mark are known to be over only when all of them are, so each of them may be over, or wait, or not have begun.
std::vector<Endpoint::NumberedCall> GpuEndpoint::unfinished_since(std::uint32_t number) const {
    const std::lock_guard lock(announced_mutex_);
    const std::uint32_t last = options_.kernel_mode ? enqueued_.load() : number;
    const std::uint32_t count = std::min(last - number + 1, remembered);
    std::vector<Endpoint::NumberedCall> calls;
    for (std::uint32_t behind = count; behind-- > 0;) calls.push_back(announced_[(last - behind) % remembered].call);
    return calls;
}

// Finds out, without work for the GPU, which calls are over: a copy from the device might wait behind copies that wait
// for the very call. An event behind the last call is recorded when it is needed, as that costs each call a
// microsecond.
void GpuEndpoint::refresh_completed() {
    if (!options_.kernel_mode || captured_) return;
    const cuda::Functions& functions = driver_.functions();
    if (marked_ != completed() && functions.event_query(mark_->handle()) != cuda::Result::not_ready)
        seen_completed_ = marked_;
    if (marked_ != completed() || completed() == enqueued_.load() || !order_.any) return;
    if (!mark_) mark_ = std::make_unique<GpuEventHandle>(driver_);
    if (is_capturing(order_.stream)) return;
    marked_ = enqueued_.load();
    // A stream that does not exist any more has run everything: no event would ever tell.
    if (functions.event_record(mark_->handle(), order_.stream) != cuda::Result::success) seen_completed_ = marked_;
}

// Returns the ranks whose processes have ended, or are about to: a killed process may take a while to end.
std::vector<std::uint32_t> GpuEndpoint::lost_ranks() const {
    std::vector<std::uint32_t> lost = endpoint_.lost_ranks();
    for (std::uint32_t peer = 0; peer < size(); ++peer)
        if (peer != rank() && board_->has_died(peer) && !endpoint_.has_closed(peer) &&
            std::find(lost.begin(), lost.end(), peer) == lost.end())
            lost.push_back(peer);
    return lost;
}

// Reports that ranks were killed, if a call waits for them; their kernels and those that wait for them have been ended.
void GpuEndpoint::report_the_dead() {
    bool found = false;
    for (std::uint32_t peer = 0; peer < size(); ++peer) {
        if (peer == rank() || !board_->has_died(peer)) continue;
        if (std::find(known_dead_.begin(), known_dead_.end(), peer) != known_dead_.end()) continue;
        known_dead_.push_back(peer);
        found = true;
    }
    if (!found) return;
    dead_ = static_cast<int>(known_dead_.front());
    const Clock::time_point until = Clock::now() + longest_report;
    while (options_.kernel_mode && word(offsetof(Mailbox, fault)) == Mailbox::none && Clock::now() < until)
        ::usleep(500);
    look();
    look();  // in stream mode, a call is judged when it is seen for the second time
}

// Tells the kernels of this rank and of ranks that have ended to leave, without a call of the driver: another thread of
// this process may be waiting in one.
void GpuEndpoint::set_abort_words(const std::vector<std::uint32_t>& lost) {
    for (const std::uint32_t peer : lost) board_->head(peer).abort.store(1, std::memory_order_release);
    if (options_.kernel_mode || endpoint_.broken()) board_->head(rank()).abort.store(1, std::memory_order_release);
}

// In kernel mode: reports that a rank has died if a kernel waited. A call that is made later reports it itself.
void GpuEndpoint::report_death() {
    if (dead_ < 0 || !options_.kernel_mode || word(offsetof(Mailbox, fault)) != Mailbox::aborted) return;
    const Announced running = this->running();
    const Wait what{std::min(word(offsetof(Mailbox, peer)), size() - 1),
                    word(offsetof(Mailbox, step)),
                    {},
                    true,
                    running.call.number,
                    running.call.text};
    endpoint_.report_peer_ended(static_cast<std::uint32_t>(dead_.load()), what);
}

void GpuEndpoint::look() {
    if (const std::unique_lock calls(calls_, std::try_to_lock); calls) refresh_completed();
    const std::lock_guard lock(looking_);
    try {
        if (!endpoint_.broken()) {
            report_death();
            report_mailbox();
            check_collective();
            check_transfers();
        }
    } catch (const Failure&) {  // told to all ranks
    }
    if (endpoint_.broken() && (!aborted_ || has_work())) abort(lost_ranks());
}

// Reports a fault that a kernel has found. Throws Failure.
void GpuEndpoint::report_mailbox() {
    if (word(transfer_mailbox_at + offsetof(Mailbox, fault)) == Mailbox::mismatch)
        report_transfer_mismatch(word(transfer_mailbox_at + offsetof(Mailbox, peer)));
    const std::uint32_t fault = word(offsetof(Mailbox, fault));
    if (fault != Mailbox::mismatch && fault != Mailbox::timeout) return;
    const std::uint32_t peer = std::min(word(offsetof(Mailbox, peer)), size() - 1);
    const Announced running = this->running();
    if (fault == Mailbox::mismatch) endpoint_.report_mismatch(peer, running.call);
    const Wait what{peer, word(offsetof(Mailbox, step)), {}, true, running.call.number, running.call.text};
    endpoint_.report_timeout(what, running.timeout);
}

// Looks whether the calls that run can end. They are judged when the first of them is seen for the second time.
void GpuEndpoint::check_collective() {
    const std::uint32_t number = started();
    const Clock::time_point now = Clock::now();
    if (number == completed()) {
        watch_.active = false;
        return;
    }
    if (!watch_.active || watch_.number != number) {
        watch_ = {true, number, now};
        return;
    }
    const Announced running = this->running();
    const auto over = [&] { return completed() == number || started() != number; };
    const auto lost = lost_ranks();
    const bool late = !options_.kernel_mode && now - watch_.since >= running.timeout;
    if (over()) return;
    Wait what{rank(), 0, {}, true, running.call.number, running.call.text};
    if (!lost.empty() && !(options_.kernel_mode && captured_)) {
        abort(lost);
        what = locate(running, lost.front());
        endpoint_.report_peer_ended(lost.front(), what);
    }
    if (captured_) return;  // a CUDA graph may run this call, or none
    for (const Endpoint::NumberedCall& call : unfinished_since(number)) {
        what.call = call.number;
        what.text = call.text;
        endpoint_.check_running(call, what, over);
    }
    if (late) endpoint_.report_timeout(locate(running, what.peer), now - watch_.since);
}

// Finds out for which rank, and at which step, a call waits. `suspect` is returned if that is not known.
Wait GpuEndpoint::locate(const Announced& running, std::uint32_t suspect) {
    Wait what{suspect, 0, {}, true, running.call.number, running.call.text};
    if (options_.kernel_mode) {
        const Clock::time_point until = Clock::now() + longest_report;
        while (word(offsetof(Mailbox, fault)) == Mailbox::none && Clock::now() < until) ::usleep(500);
        if (word(offsetof(Mailbox, fault)) == Mailbox::none) return what;
        what.peer = std::min(word(offsetof(Mailbox, peer)), size() - 1);
        what.step = word(offsetof(Mailbox, step));
        return what;
    }
    const std::byte* const record = copy_record(0);
    for (const StreamOperation& operation : running.plan->operations) {
        if (operation.kind != StreamOperation::wait) continue;
        std::uint32_t signal = 0;
        std::memcpy(&signal, record + layout_.signal(0, operation.peer) - layout_.record(0), sizeof signal);
        const std::uint32_t expected = running.received[operation.peer] + operation.count;
        if (static_cast<std::int32_t>(signal - expected) >= 0) continue;
        what.peer = operation.peer;
        what.step = operation.step;
        break;
    }
    return what;
}

void GpuEndpoint::check_transfers() {
    const Clock::time_point now = Clock::now();
    for (std::uint32_t index = 0; index < lanes_.size(); ++index) {
        const std::uint32_t peer = index / 2;
        const std::uint64_t at = progress_offset(index % 2 == 0, peer);
        const std::uint32_t number = word(at);
        Watch& watch = lane_watches_[index];
        const auto over = [&] { return word(at + 4) == number || word(at) != number; };
        if (over()) {
            watch.active = false;
            continue;
        }
        if (!watch.active || watch.number != number) {
            watch = {true, number, now};
            continue;
        }
        Lane::Message message;
        {
            const std::lock_guard lock(announced_mutex_);
            message = lanes_[index].recent[number % remembered_transfers];
        }
        const Wait what{peer, message.tag, {}, false};
        endpoint_.check_running({}, what, over);
        if (now - watch.since >= message.timeout && !over()) endpoint_.report_timeout(what, now - watch.since);
    }
}

// Makes the kernels of this rank leave, and those of ranks that have ended: on a GPU that they share, they would wait
// on. Streams that wait go on, and their kernels find the abort word set.
void GpuEndpoint::abort(const std::vector<std::uint32_t>& lost) {
    aborted_ = true;
    set_abort_words(lost);
    std::vector<cuda::MemoryOperation> operations;
    const auto set = [&](cuda::Address address, std::uint32_t value) {
        cuda::MemoryOperation& operation = operations.emplace_back();
        operation.kind = cuda::MemoryOperation::Kind::write_32;
        operation.address = address;
        operation.value = value;
    };
    for (const std::uint32_t peer : lost) set(state(peer) + layout_.abort(), 1);  // first: it is urgent
    set(memory_.address() + layout_.abort(), 1);
    if (endpoint_.broken()) {  // a signal that a peer sends later may undo this, so it is repeated
        const std::lock_guard lock(announced_mutex_);
        for (std::uint32_t peer = 0; peer < size(); ++peer) {
            if (peer == rank()) continue;
            if (!options_.kernel_mode)
                set(memory_.address() + layout_.signal(0, peer), counters_[peer].received + far_ahead);
            for (const bool sending : {true, false})
                set(memory_.address() + layout_.signal(transfer_record(sending, peer), peer),
                    lane(sending, peer).counters.received + far_ahead);
        }
    }
    constexpr std::size_t most = 128;  // operations in a batch
    for (std::size_t first = 0; first < operations.size(); first += most)
        driver_.check(driver_.functions().stream_batch_mem_op(
                          stream_->handle(), static_cast<unsigned>(std::min(most, operations.size() - first)),
                          operations.data() + first, 0),
                      "cuStreamBatchMemOp");
}

// Copies a record of this rank's flags to the host.
const std::byte* GpuEndpoint::copy_record(std::uint32_t record) {
    copy(mapped_->address() + record_copy_at, memory_.address() + layout_.record(record), layout_.record_bytes(),
         stream_->handle());
    driver_.check(driver_.functions().stream_synchronize(stream_->handle()), "cuStreamSynchronize");
    return mapped_->host() + record_copy_at;
}

}  // namespace unisono::gpu
