#include "fake_network.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace unisono::tests {

namespace {

constexpr std::uint32_t longest_delay_us = 300;

void signal(int event) {
    const std::uint64_t one = 1;
    if (::write(event, &one, sizeof one) < 0) return;  // it is readable already
}

void clear(int event) {
    std::uint64_t count;
    if (::read(event, &count, sizeof count) < 0) return;  // it was not readable
}

}  // namespace

class FakeTransport : public Transport {
  public:
    FakeTransport(FakeNetwork& network, std::uint32_t rank)
        : network_(network), rank_(rank), event_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
        const std::lock_guard lock(network.mutex_);
        network.ports_[rank].event = event_;
        if (!network.ports_[rank].mail.empty()) signal(event_);
    }
    ~FakeTransport() override {
        const std::lock_guard lock(network_.mutex_);
        network_.ports_[rank_].event = -1;
        ::close(event_);
    }

    void connect(std::uint32_t) override {}
    void send(std::uint32_t to, Letter letter, Sink&) override {
        const std::lock_guard lock(network_.mutex_);
        const std::byte* const data = letter.payload();
        std::vector<std::byte> payload(data, data + letter.label.bytes);
        sent_.emplace_back(to, letter.label);  // reported in `progress`, as by a real transport
        if (network_.cut_off_.contains(rank_) || network_.cut_off_.contains(to)) return;
        FakeNetwork::Port& port = network_.ports_[to];
        auto arrives = FakeNetwork::Clock::now() + std::chrono::microseconds(network_.random_() % longest_delay_us);
        for (const FakeNetwork::Mail& mail : port.mail)  // letters of one sender arrive in order
            if (mail.from == rank_) arrives = std::max(arrives, mail.arrives);
        port.mail.push_back({arrives, rank_, letter.label, std::move(payload)});
        if (port.event >= 0) signal(port.event);
        signal(event_);
    }
    void send_to_all(const Letter& letter, Sink& sink) override {
        for (std::uint32_t peer = 0; peer < network_.ports_.size(); ++peer)
            if (peer != rank_) send(peer, letter, sink);
    }
    void detach(std::uint64_t) override {}  // letters own their payload here
    bool progress(Sink& sink) override {
        std::vector<FakeNetwork::Mail> arrived;
        std::vector<std::pair<std::uint32_t, Label>> sent;
        std::vector<std::uint32_t> lost;
        {
            const std::lock_guard lock(network_.mutex_);
            sent.swap(sent_);
            auto& mail = network_.ports_[rank_].mail;
            const auto now = FakeNetwork::Clock::now();
            for (auto item = mail.begin(); item != mail.end();) {
                if (item->arrives > now) {
                    ++item;
                    continue;
                }
                arrived.push_back(std::move(*item));
                item = mail.erase(item);
            }
            if (mail.empty()) clear(event_);
            for (const std::uint32_t rank : network_.cut_off_)
                if (rank != rank_ && noticed_.insert(rank).second) lost.push_back(rank);
        }
        for (const auto& [to, label] : sent) sink.on_sent(to, label);
        for (FakeNetwork::Mail& mail : arrived) {
            if (mail.label.kind == LetterKind::farewell) {
                gone_.insert(mail.from);
                continue;
            }
            auto* const data = new std::byte[mail.payload.size() + 1];
            std::copy(mail.payload.begin(), mail.payload.end(), data);
            sink.on_letter(mail.label, Payload(data, [](void*, std::byte* bytes) { delete[] bytes; }, nullptr));
        }
        gone_.insert(lost.begin(), lost.end());
        for (const std::uint32_t rank : lost) sink.on_lost(rank, "cut off");
        return !sent.empty() || !arrived.empty();
    }
    int event_descriptor() const override { return event_; }
    bool has_unsent() const override { return false; }
    bool is_gone(std::uint32_t peer) const override { return gone_.contains(peer); }
    void check_peers(Sink&) override {}
    void abandon() override {}

  private:
    FakeNetwork& network_;
    const std::uint32_t rank_;
    const int event_;
    std::vector<std::pair<std::uint32_t, Label>> sent_;
    std::set<std::uint32_t> noticed_;
    std::set<std::uint32_t> gone_;
};

std::unique_ptr<Transport> FakeNetwork::transport(std::uint32_t rank) {
    return std::make_unique<FakeTransport>(*this, rank);
}

void FakeNetwork::cut_off(std::uint32_t rank) {
    const std::lock_guard lock(mutex_);
    cut_off_.insert(rank);
    for (const Port& port : ports_)
        if (port.event >= 0) signal(port.event);
}

}  // namespace unisono::tests
