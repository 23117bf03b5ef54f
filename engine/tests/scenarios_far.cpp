#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>
#include <thread>

#include "check.hpp"
#include "letters.hpp"
#include "members.hpp"
#include "scenarios.hpp"
#include "small_plans.hpp"
#include "unisono/tcp_transport.hpp"

namespace unisono::tests {

namespace {

using std::chrono::milliseconds;

// Counts what a transport reports.
struct Counter : Sink {
    void on_letter(const Label& label, Payload) override { letters += label.number; }
    void on_sent(std::uint32_t, const Label&) override {}
    void on_lost(std::uint32_t, const std::string&) override { ++lost; }
    std::uint64_t letters = 0;
    int lost = 0;
};

// Checks that letters arrive in the order in which they were sent.
struct InOrder : Sink {
    void on_letter(const Label& label, Payload) override { CHECK(label.number == letters++); }
    void on_sent(std::uint32_t, const Label&) override {}
    void on_lost(std::uint32_t, const std::string& reason) override { give_up(reason.c_str(), "a lost connection", 0); }
    std::uint64_t letters = 0;
};

int open_sockets() {
    int count = 0;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
        std::error_code error;
        count += std::filesystem::read_symlink(entry.path(), error).string().starts_with("socket:");
    }
    return count;
}

// Two ranks that know each other.
struct TwoRanks {
    TwoRanks() {
        TcpPeer to_second{"127.0.0.1", second->port(), {}, {}}, to_first{"127.0.0.1", first->port(), {}, {}};
        to_second.ticket_to[0] = to_first.ticket_from[0] = std::byte{1};
        to_second.ticket_from[0] = to_first.ticket_to[0] = std::byte{2};
        first->know_peers({{}, to_second});
        second->know_peers({to_first, {}});
    }
    std::unique_ptr<TcpTransport> first = std::make_unique<TcpTransport>(0, "127.0.0.1", 0, 0);
    std::unique_ptr<TcpTransport> second = std::make_unique<TcpTransport>(1, "127.0.0.1", 0, 0);
};

// Sends letter `number`; one in three is short.
void send(TcpTransport& transport, std::uint32_t from, std::uint64_t number, Sink& sink, std::size_t unit = 40'000) {
    Letter letter{};
    letter.label.from = from;
    letter.label.number = number;
    letter.label.bytes = number % 3 * unit;
    letter.owned.assign(letter.label.bytes, std::byte{});
    transport.send(1 - from, std::move(letter), sink);
}

int connection_to(std::uint16_t port) {
    const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    CHECK(::connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    return socket;
}

}  // namespace

void messages_wait_for_a_rank_that_joins_late() {
    const Hosts hosts({2, 8, page_bytes, 4096});
    run_in_threads(2, [&](std::uint32_t rank) {
        if (rank == 1) std::this_thread::sleep_for(milliseconds(50));
        Member member(hosts.settings()[rank]);
        std::vector<std::byte> data(2000, std::byte{7});
        if (rank == 1) std::fill(data.begin(), data.end(), std::byte{});
        for (int repeat = 0; repeat < 20; ++repeat) {
            const auto plan = message(rank, 0, 1, data.size());
            member.executor.run(*plan, data.data(), data.data(), deadline_after(long_enough));
            CHECK(data.front() == std::byte{7} && data.back() == std::byte{7});
        }
    });
}

void a_rank_that_is_cut_off_is_named_on_every_host() {
    constexpr std::uint32_t cut = 3;
    Hosts hosts({5, 8, page_bytes, 4096});
    with_members(hosts, [&](Member& member) {
        std::vector<std::byte> data(2000);
        if (member.rank() == cut) {
            std::this_thread::sleep_for(milliseconds(30));
            hosts.cut_off(cut);
            return;
        }
        const FaultReport report = report_of([&] {
            // Rank 1 is on the host of the rank that is cut off, and learns of it from the others.
            const auto plan = message(member.rank(), member.rank() == 1 ? 0 : cut, member.rank(), data.size());
            member.executor.run(*plan, data.data(), data.data(), deadline_after(long_enough));
        });
        CHECK(report.fault == Fault::peer_lost && report.culprit == cut && says(report, "far_peer_lost_in_call"));
        CHECK(says(report, "host=second") && says(report, "reason=cut off"));
    });
}

// All ranks have the same clock here, so the peer's reading lies between the two of the rank that asks.
void the_clock_of_a_far_rank_is_read() {
    Hosts hosts({3, 8, page_bytes, 4096});
    for (int repeat = 0; repeat < 20; ++repeat) {
        const auto clock = hosts.courier(1).ask_clock(repeat % 2 * 2, long_enough);
        CHECK(clock && clock->asked <= clock->read && clock->read <= clock->answered);
    }
    hosts.courier(0).close();
    const Clock::time_point began = Clock::now();
    CHECK(!hosts.courier(1).ask_clock(0, long_enough) && Clock::now() - began < long_enough);  // it has said farewell
    CHECK(!hosts.courier(0).ask_clock(1, long_enough));
    std::thread asking([&] {
        while (hosts.courier(2).ask_clock(1, long_enough)) {
        }
    });
    std::this_thread::sleep_for(milliseconds(20));
    hosts.courier(2).close();  // while another thread asks
    asking.join();
}

void strangers_are_turned_away() {
    TcpTransport transport(0, "127.0.0.1", 0, 0);
    TcpPeer peer{"127.0.0.1", 1, {}, {}};
    peer.ticket_from[0] = std::byte{1};
    transport.know_peers({{}, peer});
    Counter counter;
    const int silent = connection_to(transport.port()), noisy = connection_to(transport.port());
    std::vector<char> garbage(1000, 'x');
    CHECK(::send(noisy, garbage.data(), garbage.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(garbage.size()));
    // A greeting in the right form, but without the ticket.
    const int forger = connection_to(transport.port());
    char greeting[48] = "unisono-far2";
    greeting[12] = 1;
    CHECK(::send(forger, greeting, sizeof greeting, MSG_NOSIGNAL) == sizeof greeting);
    const Clock::time_point ends = Clock::now() + std::chrono::seconds(10);
    while (transport.rejected() < 2 && Clock::now() < ends) transport.progress(counter);
    CHECK(transport.rejected() == 2);
    char answer;
    CHECK(::recv(forger, &answer, 1, 0) <= 0);
    CHECK(counter.letters == 0 && counter.lost == 0);
    for (const int socket : {silent, noisy, forger}) ::close(socket);
}

// Both ranks begin to connect before either hears of the other, or one begins `lead` steps before. Letters arrive in
// order, and one connection remains.
void two_ranks_share_one_connection() {
    for (int lead = -6; lead <= 6; ++lead) {
        TwoRanks ranks;
        TcpTransport &first = *ranks.first, &second = *ranks.second;
        InOrder at_first, at_second;
        const int before = open_sockets();
        constexpr std::uint64_t most = 20;
        std::uint64_t sent_by_first = 0, sent_by_second = 0;
        const Clock::time_point ends = Clock::now() + long_enough;
        for (int step = -6; at_first.letters < most || at_second.letters < most; ++step) {
            CHECK(Clock::now() < ends);
            if (step >= 0 && sent_by_first < most) send(first, 0, sent_by_first++, at_first);
            if (step >= lead && sent_by_second < most) send(second, 1, sent_by_second++, at_second);
            first.progress(at_first);
            second.progress(at_second);
        }
        CHECK(first.rejected() == 0 && second.rejected() == 0);
        while (open_sockets() > before + 2 && Clock::now() < ends) {
            first.progress(at_first);
            second.progress(at_second);
        }
        CHECK(open_sockets() == before + 2);
    }
}

// The rank that leaves does not read the last letters to it, so its kernel resets the connection. The other rank may
// have noticed that because it wrote again, before it has read anything.
void a_rank_that_leaves_loses_no_letter() {
    for (const bool writes_again : {false, true}) {
        TwoRanks ranks;
        InOrder at_first, at_second;
        const Clock::time_point ends = Clock::now() + long_enough;
        constexpr std::uint64_t most = 6;
        send(*ranks.second, 1, 0, at_second);
        while (at_first.letters == 0) {
            CHECK(Clock::now() < ends);
            ranks.first->progress(at_first);
            ranks.second->progress(at_second);
        }
        for (std::uint64_t number = 0; number < most; ++number) send(*ranks.first, 0, number, at_first, 5'000);
        Letter farewell{};
        farewell.label.kind = LetterKind::farewell;
        ranks.first->send_to_all(farewell, at_first);
        send(*ranks.second, 1, 1, at_second);
        while (ranks.first->undelivered() > 0) CHECK(Clock::now() < ends);  // it reads nothing
        ranks.first.reset();
        if (writes_again)
            for (std::uint64_t number = 2; number < 5; ++number) send(*ranks.second, 1, number, at_second);
        while (!ranks.second->is_gone(0)) {
            CHECK(Clock::now() < ends);
            ranks.second->progress(at_second);
        }
        CHECK(at_second.letters == most);
        std::this_thread::sleep_for(milliseconds(120));
        ranks.second->progress(at_second);
        ranks.second->check_peers(at_second);  // InOrder fails if a peer is lost
    }
}

// The courier closes the oldest of too many strangers while an event of it waits (the address sanitizer sees whether it
// is used then).
void the_oldest_of_many_strangers_makes_room() {
    TcpTransport transport(0, "127.0.0.1", 0, 0);
    transport.know_peers({{}, {"127.0.0.1", 1, {}, {}}});
    Counter counter;
    std::vector<int> strangers;
    for (int number = 0; number < 256; ++number) {
        strangers.push_back(connection_to(transport.port()));
        transport.progress(counter);
    }
    CHECK(transport.rejected() == 0);
    strangers.push_back(connection_to(transport.port()));
    CHECK(::send(strangers.front(), "x", 1, MSG_NOSIGNAL) == 1);
    const Clock::time_point ends = Clock::now() + std::chrono::seconds(10);
    while (transport.rejected() < 1 && Clock::now() < ends) transport.progress(counter);
    CHECK(transport.rejected() == 1);
    char answer;
    CHECK(::recv(strangers.front(), &answer, 1, 0) <= 0);
    CHECK(::recv(strangers.back(), &answer, 1, MSG_DONTWAIT) < 0);  // still open
    for (const int socket : strangers) ::close(socket);
}

}  // namespace unisono::tests
