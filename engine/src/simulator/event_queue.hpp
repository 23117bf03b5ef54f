// A queue of events in the order of their times; events of the same time are ordered by type, pass and index.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace unisono {

enum class EventType : std::uint64_t { flow_end, wake, leave, head };

struct TimedEvent {
    double time;
    std::uint64_t key;

    // 2 bits for the type, 30 for the pass, 32 for the index.
    TimedEvent(double at, EventType type, std::uint64_t index, std::uint64_t pass)
        : time(at), key(static_cast<std::uint64_t>(type) << 62 | pass << 32 | index) {}
    EventType type() const { return static_cast<EventType>(key >> 62); }
    std::uint32_t index() const { return static_cast<std::uint32_t>(key); }
    std::uint32_t pass() const { return static_cast<std::uint32_t>(key >> 32 & 0x3fffffff); }
    bool before(const TimedEvent& other) const { return time < other.time || (time == other.time && key < other.key); }
};

// A heap with four children per node: shallower than a binary one, and the children share a cache line.
class EventQueue {
  public:
    bool empty() const { return events_.empty(); }
    const TimedEvent& top() const { return events_.front(); }

    void push(TimedEvent event) {
        std::size_t at = events_.size();
        events_.push_back(event);
        while (at > 0) {
            const std::size_t parent = (at - 1) / 4;
            if (!event.before(events_[parent])) break;
            events_[at] = events_[parent];
            at = parent;
        }
        events_[at] = event;
    }

    TimedEvent pop() {
        const TimedEvent first = events_.front(), moved = events_.back();
        events_.pop_back();
        const std::size_t count = events_.size();
        if (count == 0) return first;
        std::size_t at = 0;
        for (;;) {
            const std::size_t child = 4 * at + 1;
            if (child >= count) break;
            const std::size_t end = child + 4 < count ? child + 4 : count;
            std::size_t least = child;
            for (std::size_t other = child + 1; other < end; ++other)
                if (events_[other].before(events_[least])) least = other;
            if (!events_[least].before(moved)) break;
            events_[at] = events_[least];
            at = least;
        }
        events_[at] = moved;
        return first;
    }

  private:
    std::vector<TimedEvent> events_;
};

}  // namespace unisono
