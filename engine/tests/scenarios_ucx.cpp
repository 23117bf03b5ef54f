#include <sys/mman.h>

#include <atomic>
#include <thread>

#include "../src/far/ucx_worker.hpp"
#include "check.hpp"
#include "hosts.hpp"
#include "scenarios.hpp"
#include "unisono/ucx_transport.hpp"

namespace unisono::tests {

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using SteadyClock = std::chrono::steady_clock;

constexpr std::size_t long_bytes = 300'000;

// Counts what a transport reports, and checks the payloads.
struct Receiver : Sink {
    void on_letter(const Label& label, Payload payload) override {
        if (label.kind != LetterKind::message) return;
        for (const std::size_t at : {std::size_t{0}, static_cast<std::size_t>(label.bytes) - 1})
            CHECK(payload.data()[at] == static_cast<std::byte>(label.number));
        ++messages;
    }
    void on_sent(std::uint32_t, const Label& label) override {
        if (label.kind == LetterKind::message || label.kind == LetterKind::asks_state) CHECK(label.number == sent++);
    }
    void on_lost(std::uint32_t, const std::string& why) override { reason = why; }
    std::uint64_t messages = 0, sent = 0;
    std::string reason;
};

Letter message_letter(std::uint32_t from, std::uint64_t number, std::size_t bytes) {
    Letter letter{};
    letter.label.kind = LetterKind::message;
    letter.label.from = from;
    letter.label.number = number;
    letter.label.bytes = bytes;
    letter.owned.assign(bytes, static_cast<std::byte>(number));
    return letter;
}

// Two ranks that know each other.
struct Pair {
    Pair() {
        for (std::uint32_t rank = 0; rank < 2; ++rank)
            tcp[rank] = std::make_unique<TcpTransport>(rank, "127.0.0.1", 0, 0);
        for (std::uint32_t rank = 0; rank < 2; ++rank) {
            peers[rank].resize(2);
            TcpPeer& peer = peers[rank][1 - rank];
            peer = {"127.0.0.1", tcp[1 - rank]->port(), {}, {}};
            peer.ticket_to[5] = static_cast<std::byte>(1 + rank);
            peer.ticket_from[5] = static_cast<std::byte>(2 - rank);
        }
    }
    std::unique_ptr<UcxTransport> over_ucx(std::uint32_t rank) {
        auto transport = std::make_unique<UcxTransport>(ucx_in_use, std::move(tcp[rank]), rank, 2);
        transport->know_peers(peers[rank]);
        return transport;
    }
    std::unique_ptr<TcpTransport> tcp[2];
    std::vector<TcpPeer> peers[2];
};

template <typename Condition, typename... Transports>
void progress_until(Condition condition, Sink& sink, Transports&... transports) {
    const auto ends = SteadyClock::now() + seconds(20);
    while (!condition()) {
        CHECK(SteadyClock::now() < ends);
        (transports.progress(sink), ...);
    }
}

}  // namespace

void active_messages_without_a_valid_ticket_are_dropped() {
    const Pair pair;
    UcxWorker member(ucx_in_use, 2), forger(ucx_in_use, 2), receiver(ucx_in_use, 2);
    member.know_peers(pair.peers[1]);
    forger.know_peers({{"127.0.0.1", 1, {}, {}}, {}});
    receiver.know_peers(pair.peers[0]);
    for (UcxWorker* sender : {&forger, &member}) {
        CHECK(sender->connect(0, receiver.address().data()));
        for (const std::size_t bytes : {std::size_t{8}, long_bytes}) sender->post(0, message_letter(1, 3, bytes));
    }
    CHECK(receiver.await(seconds(20), [&] {
        forger.progress();
        member.progress();
        return receiver.rejected() == 2 && receiver.arrived.size() == 2;
    }));
    CHECK(receiver.received(1) == 2);
    for (const UcxWorker::Arrived& letter : receiver.arrived)
        CHECK((letter.label.bytes == 8 ? letter.short_payload[7] : letter.payload.data()[long_bytes - 1]) ==
              std::byte{3});
}

void messages_take_ucx_and_other_letters_tcp() {
    Pair pair;
    auto first = pair.over_ucx(0), second = pair.over_ucx(1);
    Receiver sink;
    for (std::uint64_t number = 0; number < 20; ++number)
        first->send(1, message_letter(0, number, number % 2 == 0 ? 8 : long_bytes), sink);
    progress_until([&] { return sink.messages == 20 && sink.sent == 20; }, sink, *first, *second);
    CHECK(first->posted(1) == 20 && second->posted(0) == 0);
    Letter question{};
    question.label.kind = LetterKind::asks_state;
    question.label.number = sink.sent;
    first->send(1, std::move(question), sink);
    progress_until([&] { return sink.sent == 21; }, sink, *first, *second);
    CHECK(first->posted(1) == 20 && !first->has_unsent());
}

// The receiver answers each message, so the sender has unread answers when it ends, and UCX drops what is on its way.
void the_last_messages_of_a_process_arrive() {
    Pair pair;
    auto receiving = pair.over_ucx(1);
    std::atomic<bool> ended = false;
    std::thread process([&, sending = pair.over_ucx(0)]() mutable {
        Receiver sink;
        for (std::uint64_t number = 0; number < 100; ++number)
            sending->send(1, message_letter(0, number, long_bytes), sink);
        Letter farewell{};
        farewell.label.kind = LetterKind::farewell;
        sending->send_to_all(farewell, sink);
        progress_until([&] { return !sending->has_unsent(); }, sink, *sending);
        sending.reset();
        ended = true;
    });
    Receiver sink;
    const auto ends = SteadyClock::now() + seconds(20);
    while (!ended || sink.messages < 100) {
        CHECK(SteadyClock::now() < ends);
        receiving->progress(sink);
        receiving->send(0, message_letter(1, sink.sent, 8), sink);
    }
    process.join();
    for (int check = 0; check < 8; ++check) {
        receiving->progress(sink);
        receiving->check_peers(sink);
        std::this_thread::sleep_for(milliseconds(100));
    }
    CHECK(sink.reason.empty());  // it has ended in good order
}

void ucx_does_not_read_a_payload_after_detaching() {
    constexpr std::size_t bytes = 64 << 20;
    Pair pair;
    auto sending = pair.over_ucx(0), receiving = pair.over_ucx(1);
    Receiver sink;
    sending->send(1, message_letter(0, 0, 8), sink);
    progress_until([&] { return sink.messages == 1 && sink.sent == 1; }, sink, *sending, *receiving);
    // From now on the receiver does nothing, like a process that is stopped.
    void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    Letter letter = message_letter(0, 1, 1);
    letter.label.communicator = 7;
    letter.label.bytes = bytes;
    letter.owned.clear();
    letter.data = static_cast<const std::byte*>(memory);
    sending->send(1, std::move(letter), sink);
    CHECK(sending->has_unsent());
    sending->detach(6);  // does not wait for the letters of another communicator
    CHECK(sending->has_unsent());
    sending->detach(7);
    ::munmap(memory, bytes);
    const auto ends = SteadyClock::now() + seconds(20);
    while (sink.reason.empty()) {
        CHECK(SteadyClock::now() < ends);
        sending->progress(sink);
        sending->check_peers(sink);
    }
    CHECK(sink.reason.find("has not taken the last messages") != std::string::npos && sink.sent == 1);
    CHECK(!sending->has_unsent());
}

}  // namespace unisono::tests
