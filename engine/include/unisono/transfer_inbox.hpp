// What others send to this rank, outside of collectives: which message goes to which receive.
//
// A message goes to the first receive, in the order in which they were made, that asks for its tag and for its sender or
// for any. One that nobody asked for yet is *unexpected* and kept, in memory of this process, while somebody waits for another
// message of that sender: else it would bar the way of those behind it. While nobody waits, nothing is read, and the
// sender waits when its slots are full.
//
// Whoever waits moves the messages, for itself and for all others: several threads may be at it. Each takes what
// comes from one peer at a time.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "unisono/completion.hpp"
#include "unisono/transfer.hpp"

namespace unisono {

// A receive that was made.
struct Receive {
    Transfer transfer{};
    Clock::time_point deadline{};
    std::shared_ptr<Completion> completion;  // where it goes on in the background
    Kept kept;
    std::uint64_t number = 0;                    // in the order in which they were made
    std::atomic<std::uint32_t> source = any_rank;  // once a message is on its way to it
    std::atomic<bool> done = false;              // set last; only where there is no completion

    bool has_begun() const { return source.load(std::memory_order_relaxed) != any_rank; }
    // Whose message it waits for, as far as that is known.
    std::uint32_t waits_for() const {
        const std::uint32_t known = source.load(std::memory_order_relaxed);
        return known != any_rank ? known : transfer.peer;
    }
    Wait wait() const { return {waits_for(), transfer.tag, deadline, false}; }
};

class Inbox {
  public:
    explicit Inbox(Endpoint& endpoint);

    // Adds a receive. It gets what is unexpected for it at once. Throws Failure, as all below.
    void post(const std::shared_ptr<Receive>& receive);
    // Moves what is there for a receive, or what is in its way; says whether anything moved.
    bool progress_for(const Receive& receive);
    // The same for all receives.
    bool progress_all();
    // Forgets one receive, or all that go on in the background, and returns them: from then on nobody writes to their
    // arrays. Only where the communicator is broken, as the rest of their messages is never read.
    std::vector<std::shared_ptr<Receive>> withdraw(const Receive* only = nullptr);

    std::size_t in_background() const { return in_background_.load(); }
    std::uint64_t finished() const { return finished_.load(std::memory_order_relaxed); }  // of those, so far
    // The receive in the background whose time is over first, as a wait for it; deadline max: there is none.
    Wait most_urgent(bool also_begun = true);

  private:
    struct UnexpectedMessage {  // a message that is unexpected
        std::uint32_t source, tag;
        std::uint64_t number;  // in the order in which they came
        std::uint64_t label, bytes;
        std::unique_ptr<std::byte[]> data;
        bool whole = false;
        std::shared_ptr<Receive> wanted_by;  // asked for before it was whole
        std::uint64_t slots_before;                 // how many slots the channel had filled before it
    };
    struct From {  // what comes from one peer
        // For whoever holds `moving`.
        std::atomic_flag moving;
        Reader reader;
        bool opened = false;
        bool dead = false;  // the receive of a message that had begun was withdrawn
        std::byte* data = nullptr;
        std::uint64_t bytes = 0, moved = 0;
        // The same; and changed under the mutex only, so that others may look.
        std::shared_ptr<Receive> into;  // where the message goes that has begun,
        std::shared_ptr<UnexpectedMessage> filling;  // or where it is kept as unexpected; neither: the next header begins one
        // Under the mutex.
        std::deque<std::shared_ptr<Receive>> posted;
        std::deque<std::shared_ptr<UnexpectedMessage>> unexpected;
        std::atomic<std::uint32_t> waiting = 0;  // receives from this peer that are not done
    };
    class Moving;

    bool progress(std::uint32_t peer);
    bool begin(std::uint32_t peer);
    bool move(std::uint32_t peer);
    std::shared_ptr<Receive> finish_message(From& from);
    void finish(Receive& receive);
    std::shared_ptr<Receive> claim(std::uint32_t peer, std::uint32_t tag, std::uint64_t label);
    std::shared_ptr<UnexpectedMessage> take_unexpected(const Transfer& wanted);
    std::shared_ptr<UnexpectedMessage> make_unexpected(std::uint32_t peer, std::uint32_t tag, std::uint64_t label);
    void check_label(const Transfer& wanted, std::uint32_t source, std::uint64_t sent);

    Endpoint& endpoint_;
    std::vector<From> from_;
    std::atomic<std::uint32_t> first_ = 0;  // the peer to look at first: not always the same one
    std::mutex mutex_;
    std::deque<std::shared_ptr<Receive>> posted_for_any_;  // under the mutex, as those of each peer
    std::atomic<std::uint32_t> waiting_for_any_ = 0;
    std::uint64_t posted_so_far_ = 0, unexpected_so_far_ = 0;
    std::atomic<std::size_t> in_background_ = 0;
    std::atomic<std::uint64_t> finished_ = 0;
};

}  // namespace unisono
