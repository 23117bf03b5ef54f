// One rank's end of a communicator: the shared memory, what the ranks tell each other through it, and waiting.
//
// Endpoint is implemented in five files of src/shm: endpoint.cpp (the memory, and the announcement of calls),
// endpoint_waiting.cpp (waiting and waking), endpoint_faults.cpp (the description and the report of faults),
// endpoint_timeout.cpp (the search for the rank that holds up the others) and survivors.cpp (the agreement after a
// fault).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "unisono/channel.hpp"
#include "unisono/event_log.hpp"
#include "unisono/far_link.hpp"
#include "unisono/fault_message.hpp"
#include "unisono/job_board.hpp"
#include "unisono/memory.hpp"
#include "unisono/peers.hpp"
#include "unisono/rank_names.hpp"
#include "unisono/survivors.hpp"
#include "unisono/traffic_meter.hpp"
#include "unisono/waiting.hpp"

namespace unisono {

// Thrown by a call that cannot be completed; the communicator is broken from then on.
struct Failure : std::exception {
    explicit Failure(const FaultReport& report) : report(report) {}
    const char* what() const noexcept override { return report.text; }
    FaultReport report;
};

struct Settings {
    int file = -1;                // descriptor of the shared memory; the endpoint does not close it
    std::byte* memory = nullptr;  // the address at which it is already mapped; nullptr: the endpoint maps it
    std::uint64_t offset = 0;     // of this communicator in the file
    Geometry geometry{};
    std::uint32_t rank = 0;
    std::vector<int> processes;  // process ids of all ranks
    int fault_log = -1;          // descriptor of a file that collects the faults of a job; not closed either
    WaitPolicy wait_policy{};
    // The rank of each rank in the first communicator of the file; if empty, both are the same.
    std::vector<std::uint32_t> first_ranks;

    // The ranks of other hosts; all empty if there are none. Process ids of far ranks are 0.
    std::vector<bool> far;                     // by rank
    std::vector<std::uint32_t> courier_ranks;  // the rank of each rank in the job of the courier
    std::uint64_t number = 0;                  // of this communicator, the same on all of its ranks
    FarSide* courier = nullptr;

    bool is_far(std::uint32_t peer) const { return courier != nullptr && far[peer]; }
    std::uint32_t first_rank(std::uint32_t peer) const { return first_ranks.empty() ? peer : first_ranks[peer]; }
};

// Stands for a rank that is not known in advance.
inline constexpr std::uint32_t any_rank = ~std::uint32_t{0};

// The rank that a thread waits for, the location in the program, and the deadline of the call.
struct Wait {
    std::uint32_t peer;  // or any_rank
    std::uint32_t step;  // of a collective, counted from 0; outside of collectives: the tag of a message
    Deadline deadline;
    bool in_collective;
    // For a call that runs on a GPU, while this rank may have announced later calls: its number and description.
    std::uint64_t call = 0;  // 0: the call that was announced last
    const std::string* text = nullptr;
};

class Endpoint {
  public:
    explicit Endpoint(Settings settings);  // throws MemoryRefused
    ~Endpoint();
    Endpoint(const Endpoint&) = delete;
    Endpoint& operator=(const Endpoint&) = delete;

    // Returns once `ready()` is true; throws Failure if that cannot happen any more, or does not happen in time.
    template <typename Ready>
    void wait(Ready&& ready, const Wait& what) {
        if (ready()) return;
        for (int look = 0; look < quick_looks_; ++look) {
            pause_core();
            if (ready()) return;
        }
        wait_slowly(std::ref(ready), what);
    }
    // Wakes a rank if it sleeps. Cheap if it does not, because the cache line is seldom written.
    void wake_if_asleep(std::uint32_t rank) {
        Board& theirs = board(rank);
        // The compiler must read `asleep` after it has written the message that the sleeper waits for. The processor
        // may still read it before; the fence in wait_slowly makes that harmless.
        std::atomic_signal_fence(std::memory_order_seq_cst);
        if (theirs.asleep.load(std::memory_order_relaxed) != 0) wake(theirs, rank);
    }

    // Counts the bytes that this rank sends. A simulated slow link accepts a message once it has carried the last one.
    void note_sent(std::uint64_t bytes) {
        traffic.count_in_collective(bytes);
        if (traffic.is_limited()) [[unlikely]]
            send_slowly(bytes);
    }
    void send_slowly(std::uint64_t bytes);
    void wait_for_slow_link();
    TrafficMeter traffic;
    EventLogs event_logs;

    // Announces that this rank begins its next collective, and returns the number of the call. `text` describes the
    // call and is copied to the board only if it is not there yet (`text_owner` identifies its plan).
    std::uint64_t enter(std::uint64_t fingerprint, const std::string& text, std::uint64_t text_owner);
    // Fails if a rank has entered a different collective as its call of the same number.
    void check_same_call(std::uint32_t peer) { check_same_call(peer, {call_, fingerprint_}); }
    // A call by its number.
    struct NumberedCall {
        std::uint64_t number, fingerprint;
        const std::string* text = nullptr;
    };
    void check_same_call(std::uint32_t peer, const NumberedCall& call);
    // Fails if a call that runs on a GPU cannot end any more: a rank has ended or closed the communicator before it
    // took part, or made another call. `over` returns whether the call has ended meanwhile.
    void check_running(const NumberedCall& call, const Wait& what, const std::function<bool()>& over);
    bool has_entered(std::uint32_t peer) const { return board(peer).calls.load(std::memory_order_acquire) >= call_; }

    // Marks the communicator as broken for every rank, unless it is broken already. Returns the report in effect.
    // `culprit`: a rank of this communicator, or -1.
    FaultReport break_with(Fault fault, int culprit, const FaultMessage& message);
    FaultReport fault_report() const;  // Fault::none if the communicator is not broken
    // Marks the communicator as broken with a fault on which the hosts have agreed, unless it is broken already.
    // Returns the report in effect; Fault::none if another rank is writing one.
    FaultReport adopt(const FaultReport& verdict);
    // A thread that sees it broken also sees the messages that were sent before.
    bool broken() const { return control_->broken.load(std::memory_order_acquire) != 0; }
    [[noreturn]] void fail(Fault fault, int culprit, const FaultMessage& message);
    [[noreturn]] void report_mismatch(std::uint32_t peer) { report_mismatch(peer, {call_, fingerprint_}); }
    [[noreturn]] void report_mismatch(std::uint32_t peer, const NumberedCall& call);
    [[noreturn]] void report_timeout(const Wait& what, Nanoseconds waited);
    [[noreturn]] void report_peer_ended(std::uint32_t peer, const Wait& what);
    std::vector<std::uint32_t> lost_ranks() const;  // that have not closed the communicator before
    bool has_closed(std::uint32_t peer) const { return board(peer).closed.load(std::memory_order_acquire) != 0; }
    [[noreturn]] void report_length(std::uint32_t peer, std::uint64_t sent, std::uint64_t expected, std::uint32_t step);
    // Starts a thread for asynchronous calls; fails, for every rank, if the system refuses one.
    std::thread start_thread(std::function<void()> work);

    RankNames names;                                                      // set before the first call
    std::string own_value() const { return names.value(settings.rank); }  // this rank, in a FaultMessage

    // Allocates the memory of a range, so that no later write can fail for lack of memory.
    void open(Layout::Range range);
    void open_channel(std::size_t channel) {
        open(layout.channel(channel));
        if (far_) open_far_channel(channel);
    }
    std::byte* at(std::size_t offset) const { return base_ + offset; }
    // The payload of a message from another host lies outside of the shared memory; only this process reads it. Its
    // offset may be "negative", so the arithmetic is done with integers.
    std::uint64_t offset_of(const std::byte* data) const {
        return reinterpret_cast<std::uintptr_t>(data) - reinterpret_cast<std::uintptr_t>(base_);
    }
    const std::byte* address_at(std::uint64_t offset) const {
        return reinterpret_cast<const std::byte*>(reinterpret_cast<std::uintptr_t>(base_) + offset);
    }
    std::byte* channel(std::size_t number) const { return base_ + layout.channel(number).offset; }
    const std::byte* data_of(const Message& message) const {
        return message.is_short() ? message.inline_data : address_at(message.offset);
    }
    Board& board(std::size_t rank) const { return *reinterpret_cast<Board*>(base_ + layout.board(rank)); }

    // Breaks the communicator, unless it is broken already, so that every rank leaves its calls.
    void break_to_shrink();
    // Agrees with the other ranks of the broken communicator on the members of the next one; see SurvivorVote::agree.
    // `first` is the first endpoint in the file.
    std::optional<Survivors> agree_on_survivors(Endpoint& first, Nanoseconds timeout);
    // Settles an attempt to grow, counted from 1, for all ranks: the first rank that settles it decides. Returns
    // whether it has succeeded.
    bool settle_growth(std::uint64_t attempt, bool success);
    // Returns when every rank has called this.
    void meet(Nanoseconds timeout);
    // Announces that this rank makes no further calls. The last rank to close returns the memory.
    void close();
    // Called in a forked child, which does not have the shared memory.
    void abandon() {
        closed_ = true;
        base_ = nullptr;
        static_cast<void>(far_.release());  // its destructor would wait for locks that no thread releases
    }
    // Reserves room for another communicator in the same file and returns its offset. For the first communicator only.
    std::uint64_t reserve_space(std::uint64_t bytes);
    std::uint64_t memory_in_use() const { return opened_bytes_; }  // bytes that this rank has opened

    const Settings settings;
    const Layout layout;
    // Asks a far rank to report that it has entered the running call, before this rank waits for that.
    void ask_entry(std::uint32_t peer) {
        if (settings.is_far(peer) && !has_entered(peer)) far_->ask_entry(peer, call_);
    }
    // Leaves a call: messages that the network has not accepted yet are sent in the background.
    void finish_call() {
        if (far_) far_->finish_call();
    }
    // Moves messages from and to other hosts, between two instructions that do not wait.
    void poll() {
        if (far_) far_->poll();
    }
    std::uint64_t sent_far_bytes() const { return far_ ? far_->sent_bytes() : 0; }

    // Called now and then while waiting; true ends the call (Ctrl-C).
    std::function<bool()> interrupted;
    // Breaks the communicator if the call was interrupted; returns whether it was.
    bool check_interrupt();

  private:
    void wait_slowly(std::function<bool()> ready, const Wait& what);
    void check_liveness(const std::function<bool()>& ready, const Wait& what);
    bool is_in_this_call(const Wait& what) const;
    bool has_left(std::uint32_t peer) const;
    void wake(Board& theirs, std::uint32_t rank);
    void wake_host();
    void open_far_channel(std::size_t channel);
    void write_report(const FaultReport& report);
    void check_far_ranks(const std::function<bool()>& ready, const Wait& what);
    bool all_have_left() const;
    FaultReport exclusion() const;

    [[noreturn]] void report_far_peer_lost(std::uint32_t peer, const std::string& reason, const Wait& what);
    [[noreturn]] void report_peer_closed(const Wait& what);
    std::uint64_t number_of(const Wait& what) const { return what.call != 0 ? what.call : call_; }
    std::optional<std::uint32_t> absent_from(std::uint64_t call) const;
    int follow_waits(FaultMessage& message, const Wait& what);
    int follow_waits_elsewhere(FaultMessage& message, std::uint32_t rank);
    FaultReport report_fault(Fault fault, int job_culprit, const FaultMessage& message);
    std::optional<std::uint32_t> job_rank_of(std::uint32_t first_rank) const;
    void add_location(FaultMessage& message, const Wait& what) const;
    std::string value_of(std::uint32_t peer) const { return peer == any_rank ? any_rank_value : names.value(peer); }
    std::string call_value(std::uint32_t rank, std::uint64_t number) const;
    std::string own_call_value(std::uint64_t number, const std::string* text) const;

    std::byte* base_ = nullptr;
    Control* control_ = nullptr;
    std::optional<SurvivorVote> survivor_vote_;
    Peers peers_;
    JobBoard job_board_;
    std::unique_ptr<FarLink> far_;  // nullptr if all ranks are on this host
    int quick_looks_;
    int first_yields_;
    SpinLength spin_;
    bool has_fence_;  // whether fence_everywhere works on this system
    std::mutex opening_;
    std::map<std::size_t, std::size_t> opened_;    // offset and length of each opened range
    std::atomic<std::uint64_t> opened_bytes_ = 0;  // one thread may read it while another opens a range
    std::uint64_t call_ = 0;                       // number of the running collective, or of the last one
    std::uint64_t fingerprint_ = 0;
    std::uint64_t text_owners_[remembered_texts] = {};
    bool closed_ = false;
};

}  // namespace unisono
