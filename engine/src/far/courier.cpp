#include "unisono/courier.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

#include "unisono/far_channels.hpp"
#include "unisono/ticks.hpp"

namespace unisono {

namespace {

using std::chrono::milliseconds;

// While other threads poll, the thread of the courier looks this often whether they still do. A thread that stops
// polling while letters wait hands over, so this may be long; each look may take the core from a rank that spins.
constexpr milliseconds nap{10};
constexpr milliseconds question_every{1};
constexpr milliseconds check_peers_every{500}, check_suspects_every{20};
// A letter to a process that has just started must not be lost because the process ends in good order.
constexpr milliseconds longest_farewell{2000};

}  // namespace

Courier::Courier(std::unique_ptr<Transport> transport, std::uint32_t rank, std::vector<std::string> hosts)
    : transport_(std::move(transport)), rank_(rank), hosts_(std::move(hosts)),
      wake_up_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
    thread_ = std::thread([this] { work(); });
}

Courier::~Courier() {
    close();
    if (wake_up_ >= 0) ::close(wake_up_);
}

std::unique_ptr<FarLink> Courier::join(Endpoint& endpoint) {
    auto channels = std::make_unique<FarChannels>(*this, endpoint);
    const Hold hold(*this);
    const std::uint64_t number = endpoint.settings.number;
    channels_[number] = channels.get();
    const auto early = early_.extract(number);
    if (!early.empty())
        for (auto& [label, bytes] : early.mapped()) {
            const auto release = [](void*, std::byte* data) { delete[] data; };
            auto* const data = new std::byte[std::max<std::size_t>(bytes.size(), 1)];
            std::copy(bytes.begin(), bytes.end(), data);
            channels->on_letter(label, Payload(data, release, nullptr));
        }
    return channels;
}

void Courier::remove(FarChannels& channels) {
    const Hold hold(*this);
    const std::uint64_t number = channels.endpoint_.settings.number;
    if (channels_.erase(number) == 0) return;
    left_.insert(number);
    transport_->detach(number);
}

void Courier::close() {
    if (closed_.exchange(true)) return;
    {
        const Hold hold(*this);
        Letter farewell{};
        farewell.label.kind = LetterKind::farewell;
        farewell.label.from = rank_;
        transport_->send_to_all(farewell, *this);
    }
    // A link may be slow: this waits as long as letters arrive.
    Clock::time_point ends = Clock::now() + longest_farewell;
    for (std::size_t least = std::numeric_limits<std::size_t>::max(); Clock::now() < ends;) {
        {
            const Hold hold(*this);
            transport_->progress(*this);
            const std::size_t left = transport_->undelivered();
            if (left == 0) break;
            if (left < least) ends = Clock::now() + longest_farewell;
            least = std::min(least, left);
        }
        ::usleep(200);
    }
    stopping_ = true;
    wake_thread();
    thread_.join();
    const std::lock_guard nobody_asks(asking_);
    transport_.reset();
}

void Courier::abandon() {
    closed_ = true;
    if (!transport_) return;  // it was closed before the fork
    transport_->abandon();
    static_cast<void>(transport_.release());
    thread_.detach();  // it does not exist in the child
    new (&thread_) std::thread();
}

std::optional<PeerClock> Courier::ask_clock(std::uint32_t peer, Nanoseconds longest) {
    const std::lock_guard one_at_a_time(asking_);
    if (closed_) return std::nullopt;
    const Clock::time_point ends = Clock::now() + longest;
    std::uint64_t asked;
    {
        const Hold hold(*this);
        Letter question{};
        question.label.kind = LetterKind::asks_clock;
        question.label.from = rank_;
        question.label.number = ++clock_questions_;
        clock_answer_.reset();
        asked = clock_ns();
        send(peer, std::move(question));
    }
    while (!closed_ && Clock::now() < ends) {
        poll();
        {
            const Hold hold(*this);
            if (clock_answer_) return PeerClock{asked, clock_answer_->read, clock_answer_->answered};
            if (transport_->is_gone(peer)) return std::nullopt;
        }
        std::this_thread::yield();
    }
    return std::nullopt;
}

// ---- progress --------------------------------------------------------------------------------------------------

void Courier::poll() {
    polls_.fetch_add(1, std::memory_order_relaxed);
    try_hold([&] { transport_->progress(*this); });
}

// A thread sets `neglected_` before it finds the lock held, and the holder reads it after it has released the lock: one
// of the two must see what the other has done, so no processor may swap the two steps.
void Courier::attend() {
    while (neglected_.load(std::memory_order_seq_cst)) {
        const std::unique_lock lock(mutex_, std::try_to_lock);
        if (!lock) return;
        if (!neglected_.exchange(false, std::memory_order_acq_rel)) return;
        for (const auto& [number, channels] : channels_) channels->service_neglected();
    }
}

void Courier::finish_call() {
    bool has_unsent = true;
    try_hold([&] { has_unsent = transport_->has_unsent(); });
    if (has_unsent) hand_over();
}

void Courier::hand_over() {
    handed_over_.store(true, std::memory_order_seq_cst);
    if (naps_.load(std::memory_order_seq_cst)) wake_thread();
}

void Courier::wake_thread() {
    const std::uint64_t one = 1;
    if (::write(wake_up_, &one, sizeof one) < 0) return;  // it is awake already
}

void Courier::work() {
    std::uint64_t seen = 0;
    Clock::time_point next_check = Clock::now() + check_peers_every;
    milliseconds longest_sleep = check_peers_every;
    while (!stopping_) {
        const std::uint64_t polls = polls_.load(std::memory_order_relaxed);
        sleep(polls != seen && !handed_over_.exchange(false), longest_sleep);
        seen = polls;
        const Hold hold(*this);
        transport_->progress(*this);
        longest_sleep = transport_->has_suspects() ? check_suspects_every : check_peers_every;
        next_check = std::min<Clock::time_point>(next_check, Clock::now() + longest_sleep);
        for (const auto& [number, channels] : channels_)
            if (channels->answer_questions()) longest_sleep = question_every;
        if (Clock::now() < next_check) continue;
        transport_->check_peers(*this);
        next_check = Clock::now() + check_peers_every;
    }
}

bool Courier::is_armed() {
    const Hold hold(*this);
    return transport_->arm();
}

// Sleeps until there is something to do. While other threads poll, they move the letters; this thread then only makes
// sure that it notices when they stop.
void Courier::sleep(bool is_polled, milliseconds longest) {
    pollfd waits[2] = {{wake_up_, POLLIN, 0}, {transport_->event_descriptor(), POLLIN, 0}};
    naps_.store(is_polled, std::memory_order_seq_cst);
    if (is_polled && handed_over_.load(std::memory_order_seq_cst)) is_polled = false;
    if (!is_polled && !is_armed()) {
        naps_.store(false, std::memory_order_seq_cst);
        return;
    }
    if (is_polled) longest = std::min(longest, nap);
    ::poll(waits, is_polled ? 1 : 2, static_cast<int>(longest.count()));
    naps_.store(false, std::memory_order_seq_cst);
    std::uint64_t count;
    if (::read(wake_up_, &count, sizeof count) < 0) return;  // no other thread woke this one
}

// ---- letters ---------------------------------------------------------------------------------------------------

void Courier::on_letter(const Label& label, Payload payload) {
    if (label.kind == LetterKind::asks_address) {  // this process has no transport for data only
        Letter none{};
        none.label.kind = LetterKind::address;
        none.label.from = rank_;
        return send(label.from, std::move(none));
    }
    if (label.kind == LetterKind::asks_clock || label.kind == LetterKind::clock) return on_clock(label);
    if (const auto found = channels_.find(label.communicator); found != channels_.end()) {
        found->second->on_letter(label, std::move(payload));
        return;
    }
    if (!left_.contains(label.communicator)) {  // this process has yet to join
        std::vector<std::byte> bytes(payload.data(), payload.data() + label.bytes);
        early_[label.communicator].emplace_back(label, std::move(bytes));
        return;
    }
    if (label.kind != LetterKind::asks_entry && label.kind != LetterKind::asks_state) return;
    Letter closed{};
    closed.label.kind = LetterKind::closed;
    closed.label.from = rank_;
    closed.label.communicator = label.communicator;
    send(label.from, std::move(closed));
}

// The time of arrival is taken here, because another thread may take the letter in. The answer to an earlier question,
// which came too late, is dropped.
void Courier::on_clock(const Label& label) {
    const std::uint64_t now = clock_ns();
    if (label.kind == LetterKind::clock) {
        if (label.number == clock_questions_) clock_answer_ = PeerClock{0, label.tag, now};
        return;
    }
    Letter answer{};
    answer.label.kind = LetterKind::clock;
    answer.label.from = rank_;
    answer.label.number = label.number;
    answer.label.tag = now;
    send(label.from, std::move(answer));
}

void Courier::on_sent(std::uint32_t to, const Label& label) {
    if (label.kind != LetterKind::message && label.kind != LetterKind::transfer) return;
    if (const auto found = channels_.find(label.communicator); found != channels_.end())
        found->second->on_sent(to, label);
}

void Courier::on_lost(std::uint32_t peer, const std::string& reason) {
    lost_.emplace(peer, reason);
    for (const auto& [number, channels] : channels_) channels->on_lost(peer);
}

}  // namespace unisono
