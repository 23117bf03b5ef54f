// The event log of an endpoint: what it did, with times.
//
// An *event buffer* has a fixed capacity; when it is full, the oldest events are overwritten. One thread writes at a
// time, and another may read meanwhile. An *event log* has one buffer for collectives and one for send and recv.
// Several logs may be active at the same time; each has its own buffers.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "unisono/ticks.hpp"
#include "unisono/transfer.hpp"

namespace unisono {

enum class EventKind : std::uint32_t {
    call,            // a collective, from beginning to end
    instruction,     // one instruction in one pass, including its waits
    results,         // the division or rounding of the results at the end of a pass
    awaits_message,  // a wait for a message
    awaits_room,     // a wait for room for a message
    awaits_entry,    // a wait until a rank had entered the same call
    send,            // outside of collectives, as is `receive`
    receive,
};

// Properties of a call.
inline constexpr std::uint32_t call_in_background = 1, call_failed = 2;

struct Event {
    std::uint64_t begin, end;  // ticks; after reading, ns of CLOCK_MONOTONIC, which all ranks of a host share
    std::uint64_t number;      // of the call; for send and receive: the slots that the channel had used before
    std::uint64_t about;       // the number of the plan; for send and receive: bytes
    std::uint32_t what;        // the instruction; for a call, its properties; for send and receive, the tag
    std::uint32_t pass;
    EventKind kind;
    std::uint32_t peer;  // the rank waited for; for send and receive, the other rank
};

class EventBuffer {
  public:
    explicit EventBuffer(std::size_t capacity) : rows_(capacity + 1) {}

    void put(const Event& event);

    struct Reading {
        std::vector<Event> events;  // in the order in which they ended
        std::uint64_t dropped;      // earlier events that were overwritten
    };
    // `began`: a time before the first event.
    Reading read(const ClockPair& began) const;

  private:
    static constexpr std::size_t words = sizeof(Event) / sizeof(std::uint64_t);
    static_assert(words * sizeof(std::uint64_t) == sizeof(Event));
    using Row = std::array<std::atomic<std::uint64_t>, words>;

    std::vector<Row> rows_;  // one more than can be read, because one may be being written
    std::size_t next_ = 0;   // of the row, for the writer
    std::atomic<std::uint64_t> written_ = 0;
};

class EventLog {
  public:
    explicit EventLog(std::size_t capacity) : capacity_(capacity), began_(ClockPair::now()), collectives_(capacity) {}

    void put_collective(const Event& event) { collectives_.put(event); }
    EventBuffer::Reading read_collectives() const { return collectives_.read(began_); }
    // Several threads may send and receive.
    void put_transfer(const Event& event);
    EventBuffer::Reading read_transfers();

  private:
    const std::size_t capacity_;
    const ClockPair began_;
    EventBuffer collectives_;
    std::mutex mutex_;
    std::unique_ptr<EventBuffer> transfers_;  // made for the first event
};

// The active event logs of an endpoint.
class EventLogs {
  public:
    bool any() const { return any_.load(std::memory_order_relaxed); }
    // Returns a number that changes whenever a log is started or stopped.
    std::uint64_t version() const { return version_.load(std::memory_order_relaxed); }
    std::shared_ptr<EventLog> start(std::size_t capacity);
    void stop(const std::shared_ptr<EventLog>& log);
    std::vector<std::shared_ptr<EventLog>> current();

    // Returns the transfer with the current time as its beginning, if a log is active.
    Transfer stamped(Transfer transfer) const {
        if (any()) transfer.began = read_ticks();
        return transfer;
    }
    // Records a transfer that is over. Any thread may call this.
    void put_transfer(const Transfer& transfer, EventKind kind, std::uint32_t peer);

  private:
    std::atomic<bool> any_ = false;
    std::atomic<std::uint64_t> version_ = 0;
    std::mutex mutex_;
    std::vector<std::shared_ptr<EventLog>> logs_;
};

// Writes the events of the calls that the executor makes. The clock is read once per instruction and once per actual
// wait: the end of one is the beginning of the next.
class CallEventWriter {
  public:
    // Returns whether the running call is recorded.
    bool on() const { return on_; }

    void begin(EventLogs& event_logs) {
        if (event_logs.version() != version_) [[unlikely]]
            look_at(event_logs);
        if (on_) [[unlikely]]
            began_ = instruction_began_ = last_ = read_ticks();
    }
    // The functions below may be called only if it is on. `begin_anew` excludes the time until now from the next event.
    void begin_anew();
    void enter(std::uint64_t call, std::uint64_t plan);
    void begin_pass(std::uint64_t pass);
    // Continues with an instruction of any pass, if several run at a time.
    void switch_to(std::uint64_t pass, std::uint32_t instruction);
    void end_instruction();
    void end_results();
    void end_wait(EventKind why, std::uint32_t peer);
    // Waits and records the wait, even if it fails.
    template <typename Waiting>
    void during_wait(EventKind why, std::uint32_t peer, Waiting&& waiting) {
        try {
            waiting();
        } catch (...) {
            end_wait(why, peer);
            throw;
        }
        end_wait(why, peer);
    }
    void end(bool failed);

  private:
    void look_at(EventLogs& event_logs);
    void put(EventKind kind, std::uint64_t begin, std::uint64_t end, std::uint32_t what, std::uint32_t peer = 0);

    bool on_ = false;
    std::uint64_t version_ = 0;  // of the list below
    std::vector<std::shared_ptr<EventLog>> logs_;
    std::uint64_t call_ = 0, plan_ = 0;
    std::uint64_t began_ = 0;              // of the call
    std::uint64_t instruction_began_ = 0;  // of the running instruction
    std::uint64_t last_ = 0;               // the last reading of the clock
    std::uint32_t pass_ = 0, instruction_ = 0;
};

}  // namespace unisono
