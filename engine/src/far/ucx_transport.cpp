#include "unisono/ucx_transport.hpp"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "ucx_worker.hpp"

namespace unisono {

namespace {

// Nearly all letters take UCX while a call runs, so TCP is polled less often.
constexpr std::uint64_t poll_control_every = 8;
// UCX may fail before TCP tells why: the process has ended, perhaps in good order.
constexpr std::chrono::milliseconds longest_explanation{500};
// UCX cannot take back a letter, so its payload must stay until the network has it.
constexpr std::chrono::milliseconds longest_detaching{2000};
constexpr std::chrono::milliseconds longest_confirmation{1000};

bool is_data(LetterKind kind) {
    return kind == LetterKind::message || kind == LetterKind::transfer || kind == LetterKind::credit;
}

void add_descriptor(int epoll, int descriptor) {
    epoll_event event{};
    event.events = EPOLLIN;
    if (::epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, &event) != 0)
        throw std::system_error(errno, std::generic_category(), "epoll");
}

}  // namespace

// Stands between the TCP transport and the sink.
class UcxTransport::Relay : public Sink {
  public:
    Relay(UcxTransport& transport, Sink& sink) : transport_(transport), sink_(sink) {}
    void on_letter(const Label& label, Payload payload) override {
        transport_.on_control(label, std::move(payload), sink_);
    }
    void on_sent(std::uint32_t to, const Label& label) override { sink_.on_sent(to, label); }
    void on_lost(std::uint32_t peer, const std::string& reason) override { transport_.lose(peer, reason, sink_); }

  private:
    UcxTransport& transport_;
    Sink& sink_;
};

UcxTransport::UcxTransport(std::shared_ptr<UcxContext> context, std::unique_ptr<TcpTransport> control,
                           std::uint32_t rank, std::uint32_t size)
    : control_(std::move(control)), worker_(std::make_unique<UcxWorker>(std::move(context), size)), rank_(rank),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)), leftover_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)), peers_(size) {
    for (const int descriptor : {control_->event_descriptor(), worker_->event_descriptor(), leftover_})
        add_descriptor(epoll_, descriptor);
}

UcxTransport::~UcxTransport() {
    for (const int descriptor : {epoll_, leftover_})
        if (descriptor >= 0) ::close(descriptor);
}

// UCX is not usable in a forked child, so its worker is left as it is.
void UcxTransport::abandon() {
    control_->abandon();
    static_cast<void>(worker_.release());
    for (int* descriptor : {&epoll_, &leftover_})
        if (*descriptor >= 0) ::close(std::exchange(*descriptor, -1));
}

void UcxTransport::know_peers(const std::vector<TcpPeer>& peers) {
    worker_->know_peers(peers);
    control_->know_peers(peers);
}

std::uint64_t UcxTransport::posted(std::uint32_t peer) const { return worker_->posted(peer); }

// ---- sending ---------------------------------------------------------------------------------------------------

void UcxTransport::send_control(std::uint32_t to, LetterKind kind, std::uint64_t number, std::vector<std::byte> payload,
                                Sink& sink) {
    Letter letter{};
    letter.label.kind = kind;
    letter.label.from = rank_;
    letter.label.number = number;
    letter.label.bytes = payload.size();
    letter.owned = std::move(payload);
    Relay relay(*this, sink);
    control_->send(to, std::move(letter), relay);
}

void UcxTransport::connect(std::uint32_t peer) { control_->connect(peer); }

void UcxTransport::send(std::uint32_t to, Letter letter, Sink& sink) {
    Peer& peer = peers_[to];
    if (!is_data(letter.label.kind) || peer.route == Route::tcp) {
        Relay relay(*this, sink);
        control_->send(to, std::move(letter), relay);
        return;
    }
    if (peer.lost || control_->is_gone(to)) return;
    if (peer.route == Route::ucx) {
        worker_->post(to, std::move(letter));
        Label label;
        while (worker_->take_sent(to, label)) sink.on_sent(to, label);
        return;
    }
    peer.waiting.push_back(std::move(letter));
    ++waiting_;
    if (peer.route == Route::asked) return;
    peer.route = Route::asked;
    send_control(to, LetterKind::asks_address, 0, {}, sink);
}

void UcxTransport::on_address(std::uint32_t from, const std::byte* address, std::size_t bytes, Sink& sink) {
    Peer& peer = peers_[from];
    if (peer.route != Route::asked) return;
    peer.route = bytes > 0 && worker_->connect(from, address) ? Route::ucx : Route::tcp;
    waiting_ -= peer.waiting.size();
    for (Letter& letter : std::exchange(peer.waiting, {})) send(from, std::move(letter), sink);
}

bool UcxTransport::has_unsent() const {
    return control_->has_unsent() || worker_->unsent() > 0 || waiting_ > 0 || farewell_;
}

std::size_t UcxTransport::undelivered() const {
    return control_->undelivered() + worker_->unsent() + waiting_ + (farewell_ ? 1 : 0);
}

// The payloads of letters that UCX has not got yet are copied. UCX must be done with the others: a peer that does not
// take them for a long time is given up, because the letters cannot be.
void UcxTransport::detach(std::uint64_t communicator) {
    control_->detach(communicator);
    for (Peer& peer : peers_)
        for (Letter& letter : peer.waiting)
            if (letter.label.communicator == communicator && letter.owned.empty() && letter.label.bytes > 0)
                letter.owned.assign(letter.data, letter.data + letter.label.bytes);
    const auto is_done = [&] { return !worker_->reads_payloads(communicator); };
    if (!worker_->await(longest_detaching, is_done)) {
        for (std::uint32_t peer = 0; peer < peers_.size(); ++peer)
            if (worker_->reads_payloads_for(peer, communicator))
                worker_->fail(peer, "it has not taken the last messages of a communicator for 2 s");
        for (std::uint32_t peer = 0; peer < peers_.size(); ++peer)
            if (!worker_->failure(peer).empty()) worker_->disconnect(peer);
        worker_->await(longest_detaching, is_done);
    }
    if (worker_->arrived.empty() && !worker_->has_sent()) return;
    const std::uint64_t one = 1;
    if (::write(leftover_, &one, sizeof one) < 0) return;  // it is readable already
}

// ---- receiving -------------------------------------------------------------------------------------------------

bool UcxTransport::progress(Sink& sink) {
    bool moved = worker_->progress();
    deliver(sink);
    if (++polls_ % poll_control_every == 0 || farewell_) {
        Relay relay(*this, sink);
        moved |= control_->progress(relay);
        std::uint64_t count;
        if (::read(leftover_, &count, sizeof count) > 0) moved = true;
    }
    if (farewell_) say_farewell(sink);
    return moved;
}

bool UcxTransport::arm() { return worker_->arm(); }

void UcxTransport::deliver(Sink& sink) {
    if (worker_->has_sent()) {
        worker_->clear_sent();
        Label label;
        for (std::uint32_t peer = 0; peer < peers_.size(); ++peer)
            while (worker_->take_sent(peer, label)) sink.on_sent(peer, label);
    }
    for (UcxWorker::Arrived& letter : std::exchange(worker_->arrived, {})) {
        const std::uint32_t from = letter.label.from;
        if (letter.label.bytes <= Sink::borrowed_bytes)
            sink.on_letter(letter.label, Payload(letter.short_payload.data(), nullptr, nullptr));
        else
            sink.on_letter(letter.label, std::move(letter.payload));
        if (peers_[from].to_confirm) confirm(from, sink);
    }
}

void UcxTransport::on_control(const Label& label, Payload payload, Sink& sink) {
    const std::uint32_t from = label.from;
    switch (label.kind) {
        case LetterKind::asks_address: return send_control(from, LetterKind::address, 0, worker_->address(), sink);
        case LetterKind::address: return on_address(from, payload.data(), label.bytes, sink);
        case LetterKind::data_ends: peers_[from].to_confirm = label.number; return confirm(from, sink);
        case LetterKind::data_arrived: peers_[from].owes_confirmation = false; return;
        default: return sink.on_letter(label, std::move(payload));
    }
}

// ---- endings ---------------------------------------------------------------------------------------------------

// The end of a connection of UCX drops what has arrived but has not been read yet. So a process that ends first asks
// its peers to confirm that they have its active messages; its farewell follows.
void UcxTransport::send_to_all(const Letter& letter, Sink& sink) {
    if (letter.label.kind != LetterKind::farewell) {
        Relay relay(*this, sink);
        control_->send_to_all(letter, relay);
        return;
    }
    farewell_ = letter;
    farewell_at_ = Clock::now() + longest_confirmation;
    for (std::uint32_t peer = 0; peer < peers_.size(); ++peer) {
        if (worker_->posted(peer) == 0) continue;
        peers_[peer].owes_confirmation = true;
        send_control(peer, LetterKind::data_ends, worker_->posted(peer), {}, sink);
    }
    say_farewell(sink);
}

void UcxTransport::confirm(std::uint32_t from, Sink& sink) {
    if (worker_->received(from) < *peers_[from].to_confirm) return;
    peers_[from].to_confirm.reset();
    send_control(from, LetterKind::data_arrived, 0, {}, sink);
}

void UcxTransport::say_farewell(Sink& sink) {
    for (std::uint32_t peer = 0; peer < peers_.size(); ++peer)
        if (peers_[peer].owes_confirmation && !peers_[peer].lost && !control_->is_gone(peer) &&
            Clock::now() < farewell_at_)
            return;
    Relay relay(*this, sink);
    control_->send_to_all(*std::exchange(farewell_, std::nullopt), relay);
}

void UcxTransport::check_peers(Sink& sink) {
    Relay relay(*this, sink);
    control_->check_peers(relay);
    for (std::uint32_t peer = 0; peer < peers_.size(); ++peer) {
        const std::string& failure = worker_->failure(peer);
        if (failure.empty() || peers_[peer].lost) continue;
        if (control_->is_gone(peer))
            worker_->disconnect(peer);
        else if (Clock::now() - worker_->failed_at(peer) >= longest_explanation)
            lose(peer, failure, sink);
    }
}

void UcxTransport::lose(std::uint32_t from, const std::string& reason, Sink& sink) {
    Peer& peer = peers_[from];
    if (std::exchange(peer.lost, true)) return;
    waiting_ -= peer.waiting.size();
    peer.waiting.clear();
    worker_->disconnect(from);
    sink.on_lost(from, reason);
}

}  // namespace unisono
