// A queue of events in the order of their times; events of the same time are ordered by type, pass and index.
#pragma once

#include <algorithm>
#include <bit>
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
    // One comparison without a branch: numbers that are not negative have the order of their bits.
    bool before(const TimedEvent& other) const { return bits() < other.bits(); }

  private:
    __extension__ using Bits = unsigned __int128;
    Bits bits() const { return static_cast<Bits>(std::bit_cast<std::uint64_t>(time)) << 64 | key; }
};

// A heap that fits into the cache, and *piles* of later events: all of a pile come after the heap and after the piles
// that were made later. When the heap is empty, the last pile becomes the heap. A million messages may be in flight; in
// a heap of them all, every step down would miss the cache.
class EventQueue {
  public:
    bool empty() const { return heap_.empty(); }
    const TimedEvent& top() const { return heap_.front(); }

    void push(TimedEvent event) {
        if (!piles_.empty() && !event.before(piles_.back().least)) {
            pile_of(event).events.push_back(event);
            return;
        }
        heap_.push_back(event);
        rise(heap_.size() - 1, event, 0);
        if (heap_.size() > most_in_heap) {
            set_half_aside();
            arrange();
        }
    }

    TimedEvent pop() {
        const TimedEvent first = heap_.front(), moved = heap_.back();
        heap_.pop_back();
        if (!heap_.empty())
            sink(0, moved);
        else if (!piles_.empty())
            take_pile();
        return first;
    }

  private:
    static constexpr std::size_t most_in_heap = 1 << 14;
    struct Pile {
        TimedEvent least;  // no event of the pile is before this
        std::vector<TimedEvent> events;
    };

    // The heap has four children per node: it is shallower than a binary one, and the children share a cache line.
    void rise(std::size_t at, TimedEvent event, std::size_t root) {
        while (at > root) {
            const std::size_t parent = (at - 1) / 4;
            if (!event.before(heap_[parent])) break;
            heap_[at] = heap_[parent];
            at = parent;
        }
        heap_[at] = event;
    }

    // Puts an event into the gap at a root. It mostly belongs near the bottom, so the gap moves down there first.
    void sink(std::size_t root, TimedEvent event) {
        const std::size_t count = heap_.size();
        std::size_t gap = root, child = 4 * root + 1;
        for (; child + 4 <= count; child = 4 * gap + 1) {
            const std::size_t left = child + heap_[child + 1].before(heap_[child]);
            const std::size_t right = child + 2 + heap_[child + 3].before(heap_[child + 2]);
            const std::size_t least = heap_[right].before(heap_[left]) ? right : left;
            heap_[gap] = heap_[least];
            gap = least;
        }
        if (child < count) {
            std::size_t least = child;
            for (std::size_t other = child + 1; other < count; ++other)
                if (heap_[other].before(heap_[least])) least = other;
            heap_[gap] = heap_[least];
            gap = least;
        }
        rise(gap, event, root);
    }

    void arrange() {
        for (std::size_t root = (heap_.size() + 2) / 4; root-- > 0;) sink(root, heap_[root]);
    }

    void set_half_aside() {
        const auto middle = heap_.begin() + static_cast<std::ptrdiff_t>(heap_.size() / 2);
        std::nth_element(heap_.begin(), middle, heap_.end(), is_before);
        piles_.push_back({*middle, {middle, heap_.end()}});
        heap_.erase(middle, heap_.end());
    }

    void take_pile() {
        heap_ = std::move(piles_.back().events);
        piles_.pop_back();
        while (heap_.size() > most_in_heap / 2) set_half_aside();
        arrange();
    }

    Pile& pile_of(const TimedEvent& event) {
        const auto is_later = [](const Pile& pile, const TimedEvent& other) { return other.before(pile.least); };
        return *std::lower_bound(piles_.begin(), piles_.end(), event, is_later);
    }

    static bool is_before(const TimedEvent& one, const TimedEvent& other) { return one.before(other); }

    std::vector<TimedEvent> heap_;
    std::vector<Pile> piles_;  // the latest events first
};

}  // namespace unisono
