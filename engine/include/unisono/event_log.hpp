// What an endpoint does, written down with times.
//
// An *event buffer* is used in a circle: when it is full, the oldest events are written over. One thread writes at a time; another
// one may read meanwhile. An *event log* is what somebody has asked for: a buffer of the collectives, and one of send and
// recv. Several event logs may go on at the same time; each has its own buffers.
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
    call,            // a collective, from its beginning to its end
    instruction,     // one instruction in one pass, with the waiting in it
    results,         // what is done to the results at the end of a pass: divided, rounded
    awaits_message,  // waited until a message had come
    awaits_room,     // waited until there was room for one
    awaits_entry,    // waited until a rank had begun the same call
    send,            // outside of collectives
    receive,
};

// What is said of a call.
inline constexpr std::uint32_t call_in_background = 1, call_failed = 2;

struct Event {
    std::uint64_t begin, end;  // ticks; once it was read, ns of CLOCK_MONOTONIC, the same for all ranks of a machine
    std::uint64_t number;      // of the call; of send and receive: how many slots its channel had filled before it
    std::uint64_t about;       // the number of the plan; of send and receive: bytes
    std::uint32_t what;        // the instruction; of a call, what is said above; of send and receive: the tag
    std::uint32_t pass;
    EventKind kind;
    std::uint32_t peer;  // who was waited for; the other one of send and receive
};

class EventBuffer {
  public:
    explicit EventBuffer(std::size_t capacity) : rows_(capacity + 1) {}

    void put(const Event& event);

    struct Reading {
        std::vector<Event> events;  // in the order in which they were over
        std::uint64_t dropped;      // events before them that were written over
    };
    // `began`: some time before the first event.
    Reading read(const ClockPair& began) const;

  private:
    static constexpr std::size_t words = sizeof(Event) / sizeof(std::uint64_t);
    static_assert(words * sizeof(std::uint64_t) == sizeof(Event));
    using Row = std::array<std::atomic<std::uint64_t>, words>;

    std::vector<Row> rows_;  // one more than can be read: it may be being written
    std::size_t next_ = 0;  // of the row, for the writer
    std::atomic<std::uint64_t> written_ = 0;
};

class EventLog {
  public:
    explicit EventLog(std::size_t capacity) : capacity_(capacity), began_(ClockPair::now()), collectives_(capacity) {}

    void put_collective(const Event& event) { collectives_.put(event); }
    EventBuffer::Reading read_collectives() const { return collectives_.read(began_); }
    // Send and recv may run on several threads.
    void put_transfer(const Event& event);
    EventBuffer::Reading read_transfers();

  private:
    const std::size_t capacity_;
    const ClockPair began_;
    EventBuffer collectives_;
    std::mutex mutex_;
    std::unique_ptr<EventBuffer> transfers_;  // made for the first one
};

// The event logs of an endpoint that go on.
class EventLogs {
  public:
    bool any() const { return any_.load(std::memory_order_relaxed); }
    // Another number whenever one was started or stopped.
    std::uint64_t version() const { return version_.load(std::memory_order_relaxed); }
    std::shared_ptr<EventLog> start(std::size_t capacity);
    void stop(const std::shared_ptr<EventLog>& log);
    std::vector<std::shared_ptr<EventLog>> current();

    // The same transfer with the time of its beginning, if that is to be known.
    Transfer stamped(Transfer transfer) const {
        if (any()) transfer.began = read_ticks();
        return transfer;
    }
    // Writes down one that is over. Any thread may.
    void put_transfer(const Transfer& transfer, EventKind kind, std::uint32_t peer);

  private:
    std::atomic<bool> any_ = false;
    std::atomic<std::uint64_t> version_ = 0;
    std::mutex mutex_;
    std::vector<std::shared_ptr<EventLog>> logs_;
};

// Writes down one call after the other, as the executor makes them. The clock is read once for each instruction, and
// once for each time that it really waited: nothing happens between the end of one and the beginning of the next.
class CallEventWriter {
  public:
    // Whether the running call is recorded.
    bool on() const { return on_; }

    void begin(EventLogs& event_logs) {
        if (event_logs.version() != version_) [[unlikely]] look_at(event_logs);
        if (on_) [[unlikely]] began_ = instruction_began_ = last_ = read_ticks();
    }
    // The following only if it is on. What was done before this does not belong to the next instruction.
    void begin_anew();
    void enter(std::uint64_t call, std::uint64_t plan);
    void begin_pass(std::uint64_t pass);
    void end_instruction();
    void end_results();
    void end_wait(EventKind why, std::uint32_t peer);
    void end(bool failed);

  private:
    void look_at(EventLogs& event_logs);
    void put(EventKind kind, std::uint64_t begin, std::uint64_t end, std::uint32_t what, std::uint32_t peer = 0);

    bool on_ = false;
    std::uint64_t version_ = 0;  // of what follows
    std::vector<std::shared_ptr<EventLog>> logs_;
    std::uint64_t call_ = 0, plan_ = 0;
    std::uint64_t began_ = 0;              // the call
    std::uint64_t instruction_began_ = 0;  // the one that runs
    std::uint64_t last_ = 0;               // when the clock was read last
    std::uint32_t pass_ = 0, instruction_ = 0;
};

}  // namespace unisono
