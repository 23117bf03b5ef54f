// One rank's end of a communicator: the shared memory, what the rank tells the others and knows of them, and waiting.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "unisono/channel.hpp"
#include "unisono/memory.hpp"
#include "unisono/traffic_meter.hpp"
#include "unisono/peers.hpp"
#include "unisono/rank_names.hpp"
#include "unisono/event_log.hpp"
#include "unisono/waiting.hpp"

namespace unisono {

// Thrown out of a call that cannot be completed; the communicator is broken from then on.
struct Failure : std::exception {
    explicit Failure(const FaultReport& report) : report(report) {}
    const char* what() const noexcept override { return report.text; }
    FaultReport report;
};

struct Settings {
    int file = -1;                // descriptor of the shared memory; the endpoint does not close it
    std::byte* memory = nullptr;  // where it is mapped already; nullptr: the endpoint maps it
    std::uint64_t offset = 0;     // where this communicator begins in it
    Geometry geometry{};
    std::uint32_t rank = 0;
    std::vector<int> processes;  // process numbers of all ranks
    int fault_log = -1;          // descriptor of a file that collects the faults of a job; not closed either
    WaitPolicy wait_policy{};
};

inline constexpr const char* more_memory_advice =
    "connect with smaller staging_bytes, or raise the limits on memory and file size (ulimit -v, ulimit -f)";

// Stands for whichever rank it is.
inline constexpr std::uint32_t any_rank = ~std::uint32_t{0};

// Whom somebody waits for, at what, and until when.
struct Wait {
    std::uint32_t peer;  // or any_rank
    std::uint32_t step;  // of a collective; outside of one: the tag of a message
    Clock::time_point deadline;
    bool in_collective;
};

class Endpoint {
  public:
    explicit Endpoint(Settings settings);
    ~Endpoint();
    Endpoint(const Endpoint&) = delete;
    Endpoint& operator=(const Endpoint&) = delete;

    // Returns once `ready()` is true; throws Failure if that will not happen, or not in time.
    template <typename Ready>
    void wait(Ready&& ready, const Wait& what) {
        if (ready()) return;
        for (int look = 0; look < quick_looks_; ++look) {
            pause_core();
            if (ready()) return;
        }
        wait_slowly(std::ref(ready), what);
    }
    // Wakes a rank that has gone to sleep. Cheap where it has not: the line is seldom written.
    void wake_if_asleep(std::uint32_t rank) {
        Board& theirs = board(rank);
        // The compiler must read `asleep` after it has written the message that the sleeper waits for. The processor may
        // still read it before; the fence in wait_slowly makes that harmless.
        std::atomic_signal_fence(std::memory_order_seq_cst);
        if (theirs.asleep.load(std::memory_order_relaxed) != 0) wake(theirs);
    }

    // What this rank sends. A slow link takes the next message when it has carried the last one.
    void note_sent(std::uint64_t bytes) {
        traffic.count_in_collective(bytes);
        if (traffic.is_limited()) [[unlikely]] send_slowly(bytes);
    }
    void send_slowly(std::uint64_t bytes);
    void wait_for_slow_link();
    TrafficMeter traffic;
    EventLogs event_logs;

    // Tells everyone that this rank begins its next collective. `text` says it in words, and is written down only if
    // it is not there yet (`text_owner` tells whose it is).
    std::uint64_t enter(std::uint64_t fingerprint, const std::string& text, std::uint64_t text_owner);
    // Raises the alarm if a rank has entered another collective than ours as its call of the same number.
    void check_same_call(std::uint32_t peer);
    bool has_entered(std::uint32_t peer) const { return board(peer).calls.load(std::memory_order_acquire) >= call_; }

    // Marks the communicator as broken for every rank, unless it is already so. Returns the report that stands.
    // `culprit`: a rank of this communicator, or -1.
    FaultReport break_with(Fault fault, int culprit, const std::string& text);
    FaultReport fault_report() const;  // fault none: it is not broken
    bool broken() const { return control_->broken.load(std::memory_order_relaxed) != 0; }
    [[noreturn]] void fail(Fault fault, int culprit, const std::string& text);
    [[noreturn]] void report_mismatch(std::uint32_t peer);
    // Starts a thread for the calls in the background; fails, for every rank, where the system allows none.
    std::thread start_thread(std::function<void()> work);

    RankNames names;  // to be set before the first call
    std::string own_name() const { return names.name(settings.rank); }

    // Gives a part its memory, so that no later write can fail for want of it.
    void open(Layout::Range range);
    void open_channel(std::size_t channel) { open(layout.channel(channel)); }
    std::byte* at(std::size_t offset) const { return base_ + offset; }
    std::byte* channel(std::size_t number) const { return base_ + layout.channel(number).offset; }
    const std::byte* data_of(const Message& message) const {
        return message.is_short() ? message.inline_data : base_ + message.offset;
    }
    Board& board(std::size_t rank) const { return *reinterpret_cast<Board*>(base_ + layout.board(rank)); }

    // Tells the others that this rank takes no part any more. The last one to close gives the memory back.
    void close();
    // In a forked child, which does not have the shared memory.
    void abandon() {
        closed_ = true;
        base_ = nullptr;
    }
    // Takes room for another communicator in the same file; returns where it begins. For the first communicator only.
    std::uint64_t reserve_space(std::uint64_t bytes);
    std::uint64_t memory_in_use() const { return opened_bytes_; }  // by what this rank has opened

    const Settings settings;
    const Layout layout;
    // Asked now and then while waiting; true ends the call (Ctrl-C).
    std::function<bool()> interrupted;
    // Breaks the communicator if somebody wants us to stop; says whether it did.
    bool check_interrupt();

  private:
    void wait_slowly(std::function<bool()> ready, const Wait& what);
    void check_liveness(const std::function<bool()>& ready, const Wait& what, Clock::time_point began);
    bool is_in_this_call(const Wait& what) const;
    bool has_left(std::uint32_t peer) const;
    void wake(Board& theirs);
    std::string where_waiting(const Wait& what) const;
    // In words, and the rank that everyone on the way waits for.
    std::pair<std::string, int> describe_wait(const Wait& what, double seconds) const;
    std::string name_of(std::uint32_t peer) const { return peer == any_rank ? "any rank" : names.name(peer); }
    std::string call_of(std::uint32_t rank, std::uint64_t number) const;

    std::byte* base_ = nullptr;
    Control* control_ = nullptr;
    Peers peers_;
    int quick_looks_;
    int first_yields_;
    SpinLength spin_;
    bool has_fence_;  // whether fence_everywhere works on this system
    std::mutex opening_;
    std::map<std::size_t, std::size_t> opened_;  // where they begin, and how many bytes
    std::atomic<std::uint64_t> opened_bytes_ = 0;  // a thread may ask while another one opens more
    std::uint64_t call_ = 0;  // number of the collective that is running, or ran last
    std::uint64_t fingerprint_ = 0;
    std::uint64_t text_owners_[remembered_texts] = {};
    bool closed_ = false;
};

}  // namespace unisono
