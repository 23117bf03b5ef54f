#include "unisono/transfer_inbox.hpp"

#include <algorithm>
#include <functional>
#include <iterator>
#include <new>
#include <string>
#include <thread>
#include <utility>

#include "unisono/copy.hpp"

namespace unisono {

// Holds the messages of one peer. It is held for the duration of a copy and requested at every look of a waiting
// thread; a flag suffices and is faster than a lock.
class Inbox::Moving {
  public:
    explicit Moving(From& from) : from_(from), held_(!from.moving.test_and_set(std::memory_order_acquire)) {}
    ~Moving() {
        if (held_) from_.moving.clear(std::memory_order_release);
    }
    Moving(const Moving&) = delete;
    Moving& operator=(const Moving&) = delete;
    bool held() const { return held_; }
    void wait() {
        while (!held_) {
            std::this_thread::yield();
            held_ = !from_.moving.test_and_set(std::memory_order_acquire);
        }
    }

  private:
    From& from_;
    bool held_;
};

Inbox::Inbox(Endpoint& endpoint) : endpoint_(endpoint), from_(endpoint.settings.geometry.size) {
    const Layout& layout = endpoint.layout;
    const std::uint32_t rank = endpoint.settings.rank, depth = endpoint.settings.geometry.depth;
    for (std::uint32_t peer = 0; peer < from_.size(); ++peer)
        from_[peer].reader = Reader(endpoint.channel(layout.transfer(peer, rank)), layout, depth, peer, 0);
}

// ---- receives --------------------------------------------------------------------------------------------------

void Inbox::post(const std::shared_ptr<Receive>& receive) {
    const Transfer& wanted = receive->transfer;
    std::shared_ptr<UnexpectedMessage> message;
    {
        const std::lock_guard lock(mutex_);
        message = take_unexpected(wanted);
        if (message) check_label(wanted, message->source, message->label);
        if (receive->completion) ++in_background_;
        if (!message) {
            receive->number = ++posted_so_far_;
            const bool any = wanted.peer == any_rank;
            (any ? posted_for_any_ : from_[wanted.peer].posted).push_back(receive);
            ++(any ? waiting_for_any_ : from_[wanted.peer].waiting);
            return;
        }
        receive->source = message->source;
        receive->transfer.number = message->slots_before;
        if (!message->complete) {
            message->wanted_by = receive;
            ++from_[message->source].waiting;
            return;
        }
    }
    if (wanted.bytes > 0) copy_bytes(wanted.data, message->data.get(), wanted.bytes);
    finish(*receive);
}

bool Inbox::progress_for(const Receive& receive) {
    const std::uint32_t peer = receive.waits_for();
    if (peer != any_rank) return progress(peer);
    const auto size = static_cast<std::uint32_t>(from_.size());
    const std::uint32_t first = first_.load(std::memory_order_relaxed);
    for (std::uint32_t turn = 0; turn < size; ++turn) {
        const std::uint32_t next = (first + turn) % size;
        if (next == endpoint_.settings.rank || !progress(next)) continue;
        first_.store(next + 1, std::memory_order_relaxed);
        return true;
    }
    return false;
}

bool Inbox::progress_all() {
    const auto size = static_cast<std::uint32_t>(from_.size());
    const std::uint32_t first = first_.load(std::memory_order_relaxed);
    bool moved = false;
    for (std::uint32_t turn = 0; turn < size; ++turn) {
        const std::uint32_t next = (first + turn) % size;
        if (next == endpoint_.settings.rank) continue;
        if (from_[next].waiting.load(std::memory_order_relaxed) == 0 &&
            waiting_for_any_.load(std::memory_order_relaxed) == 0)
            continue;
        if (!progress(next)) continue;
        moved = true;
        first_.store(next + 1, std::memory_order_relaxed);
    }
    return moved;
}

void Inbox::finish(Receive& receive) {
    if (receive.transfer.began != 0)
        endpoint_.event_logs.put_transfer(receive.transfer, EventKind::receive, receive.source.load());
    if (!receive.completion) {  // on the stack of a waiting thread: invalid from here on
        receive.done.store(true, std::memory_order_release);
        return;
    }
    receive.completion->finish({}, receive.source.load());
    --in_background_;
    ++finished_;
}

std::vector<std::shared_ptr<Receive>> Inbox::withdraw(const Receive* only) {
    std::vector<std::shared_ptr<Receive>> withdrawn;
    const auto is_meant = [&](const std::shared_ptr<Receive>& receive) {
        return receive && (only != nullptr ? receive.get() == only : receive->completion != nullptr);
    };
    const auto take_from = [&](std::deque<std::shared_ptr<Receive>>& posted, std::atomic<std::uint32_t>& waiting) {
        const auto meant = std::stable_partition(posted.begin(), posted.end(), std::not_fn(is_meant));
        waiting -= static_cast<std::uint32_t>(posted.end() - meant);
        std::move(meant, posted.end(), std::back_inserter(withdrawn));
        posted.erase(meant, posted.end());
    };
    for (From& from : from_) {
        Moving moving(from);
        moving.wait();
        const std::lock_guard lock(mutex_);
        take_from(from.posted, from.waiting);
        std::shared_ptr<Receive>& begun = from.filling ? from.filling->wanted_by : from.into;
        if (!is_meant(begun)) continue;
        from.dead = true;
        --from.waiting;
        withdrawn.push_back(std::move(begun));
    }
    const std::lock_guard lock(mutex_);
    take_from(posted_for_any_, waiting_for_any_);
    if (only == nullptr) in_background_ -= withdrawn.size();
    return withdrawn;
}

Wait Inbox::most_urgent(bool also_begun) {
    Wait urgent{any_rank, 0, {{}, Clock::time_point::max()}, false};
    const auto look_at = [&](const std::shared_ptr<Receive>& receive) {
        if (receive && receive->completion && receive->deadline.ends < urgent.deadline.ends) urgent = receive->wait();
    };
    const std::lock_guard lock(mutex_);
    for (const From& from : from_) {
        if (from.waiting.load(std::memory_order_relaxed) == 0) continue;
        std::for_each(from.posted.begin(), from.posted.end(), look_at);
        if (also_begun) look_at(from.filling ? from.filling->wanted_by : from.into);
    }
    std::for_each(posted_for_any_.begin(), posted_for_any_.end(), look_at);
    return urgent;
}

// ---- messages --------------------------------------------------------------------------------------------------

// Moves the available bytes of at most one message, so that its receiver does not wait for the next one as well.
bool Inbox::progress(std::uint32_t peer) {
    From& from = from_[peer];
    // Released, with the objects that it keeps alive, once this thread holds nothing.
    std::shared_ptr<Receive> finished;
    {
        const Moving moving(from);
        if (!moving.held() || from.dead) return false;
        if (!from.opened) {
            endpoint_.open_channel(endpoint_.layout.transfer(peer, endpoint_.settings.rank));
            from.opened = true;
        }
        if (!from.reader.has_message() || (!from.into && !from.filling && !begin(peer))) return false;
        if (!move(peer)) return true;
        finished = finish_message(from);
    }
    // Another thread of this rank may have found the peer held, and be asleep.
    endpoint_.wake_if_asleep(endpoint_.settings.rank);
    return true;
}

// Matches the next message with a receive, or makes it an unexpected message; returns false if it must not be read yet.
bool Inbox::begin(std::uint32_t peer) {
    From& from = from_[peer];
    const Message message = from.reader.message();
    const auto tag = static_cast<std::uint32_t>(message.offset);
    const std::lock_guard lock(mutex_);
    from.into = claim(peer, tag, message.fingerprint);
    if (from.into) {
        from.into->transfer.number = from.reader.taken();
    } else {
        if (from.waiting == 0 && waiting_for_any_ == 0) return false;
        from.filling = make_unexpected(peer, tag, message.fingerprint);
        from.filling->slots_before = from.reader.taken();
        from.unexpected.push_back(from.filling);
    }
    from.data = from.into ? from.into->transfer.data : from.filling->data.get();
    from.bytes = bytes_of_label(message.fingerprint);
    from.moved = 0;
    return true;
}

// Moves the available bytes of the current message; returns whether it is complete.
bool Inbox::move(std::uint32_t peer) {
    From& from = from_[peer];
    const Geometry& geometry = endpoint_.settings.geometry;
    const std::byte* slots = endpoint_.at(endpoint_.layout.transfer_slots(peer, endpoint_.settings.rank).offset);
    do {
        const Message message = from.reader.message();
        const std::uint64_t bytes = std::min(geometry.transfer_bytes, from.bytes - from.moved);
        const std::byte* payload = message.is_short()
                                       ? message.inline_data
                                       : slots + from.reader.taken() % geometry.depth * geometry.transfer_bytes;
        if (bytes > 0) copy_bytes(from.data + from.moved, payload, bytes);
        from.reader.release();
        endpoint_.wake_if_asleep(peer);
        from.moved += bytes;
    } while (from.moved < from.bytes && from.reader.has_message());
    return from.moved == from.bytes;
}

// Returns the receive that this message completes, if any.
std::shared_ptr<Receive> Inbox::finish_message(From& from) {
    std::shared_ptr<Receive> receive;
    std::shared_ptr<UnexpectedMessage> message;
    {
        const std::lock_guard lock(mutex_);
        message = std::move(from.filling);
        receive = std::move(message ? message->wanted_by : from.into);
        if (message) message->complete = true;
        if (receive) --from.waiting;
    }
    if (!receive) return nullptr;
    if (message && message->bytes > 0) copy_bytes(receive->transfer.data, message->data.get(), message->bytes);
    finish(*receive);
    return receive;
}

// Returns the receive that matches a message.
std::shared_ptr<Receive> Inbox::claim(std::uint32_t peer, std::uint32_t tag, std::uint64_t label) {
    From& from = from_[peer];
    const auto asks = [&](const std::shared_ptr<Receive>& receive) { return receive->transfer.tag == tag; };
    const auto named = std::find_if(from.posted.begin(), from.posted.end(), asks);
    const auto any = std::find_if(posted_for_any_.begin(), posted_for_any_.end(), asks);
    const bool is_named = named != from.posted.end(), is_any = any != posted_for_any_.end();
    if (!is_named && !is_any) return nullptr;
    const bool takes_any = is_any && (!is_named || (*any)->number < (*named)->number);
    const std::shared_ptr<Receive> found = takes_any ? *any : *named;
    check_label(found->transfer, peer, label);
    found->source = peer;
    if (takes_any) {
        posted_for_any_.erase(any);
        ++from.waiting;
        --waiting_for_any_;
    } else {
        from.posted.erase(named);
    }
    return found;
}

// ---- unexpected messages ---------------------------------------------------------------------------------------

// Removes and returns the oldest unexpected message that matches a receive.
std::shared_ptr<Inbox::UnexpectedMessage> Inbox::take_unexpected(const Transfer& wanted) {
    const bool any = wanted.peer == any_rank;
    const std::size_t begin = any ? 0 : wanted.peer, end = any ? from_.size() : wanted.peer + 1;
    From* owner = nullptr;
    std::deque<std::shared_ptr<UnexpectedMessage>>::iterator oldest;
    for (std::size_t peer = begin; peer < end; ++peer) {
        auto& here = from_[peer].unexpected;
        const auto first =
            std::find_if(here.begin(), here.end(), [&](const auto& message) { return message->tag == wanted.tag; });
        if (first == here.end() || (owner != nullptr && (*oldest)->number < (*first)->number)) continue;
        owner = &from_[peer];
        oldest = first;
    }
    if (owner == nullptr) return nullptr;
    std::shared_ptr<UnexpectedMessage> message = std::move(*oldest);
    owner->unexpected.erase(oldest);
    return message;
}

std::shared_ptr<Inbox::UnexpectedMessage> Inbox::make_unexpected(std::uint32_t peer, std::uint32_t tag,
                                                                 std::uint64_t label) {
    const std::uint64_t bytes = bytes_of_label(label);
    try {
        auto message = std::make_shared<UnexpectedMessage>();
        *message = {peer,  tag,     ++unexpected_so_far_,
                    label, bytes,   std::make_unique_for_overwrite<std::byte[]>(bytes),
                    false, nullptr, 0};
        return message;
    } catch (const std::bad_alloc&) {
        endpoint_.fail(Fault::no_memory, static_cast<int>(endpoint_.settings.rank),
                       FaultMessage("no_memory_for_message")
                           .with_value("rank", endpoint_.own_value())
                           .with("count", count_of_label(label))
                           .with("dtype", dtype_of_label(label))
                           .with("tag", tag)
                           .with_value("peer", endpoint_.names.value(peer)));
    }
}

void Inbox::check_label(const Transfer& wanted, std::uint32_t source, std::uint64_t sent) {
    if (wanted.label == sent) return;
    endpoint_.fail(Fault::mismatch, static_cast<int>(source),
                   FaultMessage("transfer_mismatch")
                       .with_value("peer", endpoint_.names.value(source))
                       .with("sent_count", count_of_label(sent))
                       .with("sent_dtype", dtype_of_label(sent))
                       .with("tag", wanted.tag)
                       .with_value("rank", endpoint_.own_value())
                       .with("count", count_of_label(wanted.label))
                       .with("dtype", dtype_of_label(wanted.label)));
}

}  // namespace unisono
