// The inbox of send and recv: matches messages with receives.
//
// A message goes to the first receive, in the order of the calls, that has its tag and names its sender or any rank. A
// message without such a receive is *unexpected*: it is copied into the memory of this process while a thread waits for
// another message of the same sender, because otherwise it would block the messages behind it. While no thread waits
// for a sender, its messages are not read, and the sender waits once its slots are full.
//
// Every waiting thread makes progress on all messages, for itself and for the others. A thread holds one peer at a
// time.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "unisono/completion.hpp"
#include "unisono/transfer.hpp"

namespace unisono {

// A posted receive.
struct Receive {
    Transfer transfer{};
    Deadline deadline;
    std::shared_ptr<Completion> completion;  // of an asynchronous receive
    Kept kept;
    std::uint64_t number = 0;                      // in the order of the calls
    std::atomic<std::uint32_t> source = any_rank;  // known once a message is matched
    std::atomic<bool> done = false;                // set last; only if there is no completion

    bool has_begun() const { return source.load(std::memory_order_relaxed) != any_rank; }
    // Returns the rank whose message it waits for, as far as that is known.
    std::uint32_t waits_for() const {
        const std::uint32_t known = source.load(std::memory_order_relaxed);
        return known != any_rank ? known : transfer.peer;
    }
    Wait wait() const { return {waits_for(), transfer.tag, deadline, false}; }
};

class Inbox {
  public:
    explicit Inbox(Endpoint& endpoint);

    // Adds a receive. If a matching message is in the queue of unexpected messages, the receive completes at once.
    // Throws Failure, as do the functions below.
    void post(const std::shared_ptr<Receive>& receive);
    // Makes progress on the messages for a receive, and on those in front of them; returns whether any byte moved.
    bool progress_for(const Receive& receive);
    // Makes progress on the messages for all receives.
    bool progress_all();
    // Removes one receive, or all asynchronous ones, and returns them: from then on no thread writes to their arrays.
    // Only if the communicator is broken, because the rest of their messages is never read.
    std::vector<std::shared_ptr<Receive>> withdraw(const Receive* only = nullptr);

    std::size_t in_background() const { return in_background_.load(); }
    // Returns the number of asynchronous receives that have finished.
    std::uint64_t finished() const { return finished_.load(std::memory_order_relaxed); }
    // Returns the asynchronous receive with the earliest deadline, as a wait; its deadline is max() if there is none.
    Wait most_urgent(bool also_begun = true);

  private:
    struct UnexpectedMessage {
        std::uint32_t source, tag;
        std::uint64_t number;  // in the order of arrival
        std::uint64_t label, bytes;
        std::unique_ptr<std::byte[]> data;
        bool complete = false;
        std::shared_ptr<Receive> wanted_by;  // posted before the message was complete
        std::uint64_t slots_before;          // slots that the channel had used before
    };
    struct From {  // the messages of one peer
        // For the thread that holds `moving`.
        std::atomic_flag moving;
        Reader reader;
        bool opened = false;
        bool dead = false;  // the receive of a partly read message was withdrawn
        std::byte* data = nullptr;
        std::uint64_t bytes = 0, moved = 0;
        // Likewise, but changed only under the mutex, so that other threads may read them.
        std::shared_ptr<Receive> into;               // the receive of the message that is being read,
        std::shared_ptr<UnexpectedMessage> filling;  // or its copy; neither: the next header begins a message
        // Under the mutex.
        std::deque<std::shared_ptr<Receive>> posted;
        std::deque<std::shared_ptr<UnexpectedMessage>> unexpected;
        std::atomic<std::uint32_t> waiting = 0;  // unfinished receives from this peer
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
    std::atomic<std::uint32_t> first_ = 0;  // the peer to check first, which changes for fairness
    std::mutex mutex_;
    std::deque<std::shared_ptr<Receive>> posted_for_any_;  // under the mutex, like those of each peer
    std::atomic<std::uint32_t> waiting_for_any_ = 0;
    std::uint64_t posted_so_far_ = 0, unexpected_so_far_ = 0;
    std::atomic<std::size_t> in_background_ = 0;
    std::atomic<std::uint64_t> finished_ = 0;
};

}  // namespace unisono
