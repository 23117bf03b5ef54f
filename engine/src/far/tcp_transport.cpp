#include "unisono/tcp_transport.hpp"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <linux/sockios.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <new>
#include <system_error>
#include <utility>

#include "tcp_connection.hpp"

namespace unisono {

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr int backlog = 512;
constexpr std::size_t most_strangers = 256;  // connections that have not authenticated themselves yet
constexpr seconds longest_greeting{5};
// Of the kernel of a peer. If a link is cut for more than 1.4 s, the kernel sends data again only after 3 s; so a
// shorter silence would turn short cuts into faults.
constexpr seconds longest_silence{4};
constexpr int most_probes = 3;               // on an idle connection: a second apart, after a second of silence
constexpr seconds longest_connecting{4};     // the kernel sends its third request after 3 s
constexpr milliseconds farewell_delay{100};  // a farewell may arrive after the end of another connection

struct AddressList {
    explicit AddressList(const std::string& address, std::uint16_t port) {
        addrinfo hints{};
        hints.ai_socktype = SOCK_STREAM;
        hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE;
        if (::getaddrinfo(address.c_str(), std::to_string(port).c_str(), &hints, &first) != 0) first = nullptr;
        if (first == nullptr) throw std::system_error(EINVAL, std::generic_category(), "not an address: " + address);
    }
    ~AddressList() { ::freeaddrinfo(first); }
    AddressList(const AddressList&) = delete;
    AddressList& operator=(const AddressList&) = delete;
    addrinfo* first = nullptr;
};

void set_option(int socket, int level, int option, int value) {
    ::setsockopt(socket, level, option, &value, sizeof value);
}

// The kernel asks the kernel of an idle peer every second whether it is there. That works while the peer's process is
// stopped, so a stopped process does not count as lost.
void configure(int socket) {
    set_option(socket, IPPROTO_TCP, TCP_NODELAY, 1);
    set_option(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
    set_option(socket, IPPROTO_TCP, TCP_KEEPIDLE, 1);
    set_option(socket, IPPROTO_TCP, TCP_KEEPINTVL, 1);
    set_option(socket, IPPROTO_TCP, TCP_KEEPCNT, most_probes);
}

std::string text_of(int error) { return std::generic_category().message(error); }

}  // namespace

// ---- buffers ---------------------------------------------------------------------------------------------------

// Each buffer is preceded by its size class, in a separate cache line.
constexpr std::size_t prefix_bytes = 64;

void PayloadPool::Deleter::operator()(std::byte* data) const {
    ::operator delete[](data - prefix_bytes, std::align_val_t(prefix_bytes));
}

Payload PayloadPool::get(std::size_t bytes) {
    const int wanted = std::bit_width(std::max<std::size_t>(bytes, 64) - 1);
    if (!free_[wanted].empty()) {
        std::byte* const data = free_[wanted].back().release();
        free_[wanted].pop_back();
        return {data, put_back, this};
    }
    auto* const raw = static_cast<std::byte*>(
        ::operator new[](prefix_bytes + (std::size_t{1} << wanted), std::align_val_t(prefix_bytes)));
    std::memcpy(raw, &wanted, sizeof wanted);
    return {raw + prefix_bytes, put_back, this};
}

void PayloadPool::put_back(void* pool, std::byte* data) {
    int size_class;
    std::memcpy(&size_class, data - prefix_bytes, sizeof size_class);
    static_cast<PayloadPool*>(pool)->free_[size_class].emplace_back(data);
}

// ---- set-up ----------------------------------------------------------------------------------------------------

TcpTransport::TcpTransport(std::uint32_t rank, const std::string& address, std::uint16_t first_port,
                           std::uint16_t last_port)
    : rank_(rank), epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
    if (epoll_ < 0) throw std::system_error(errno, std::generic_category(), "epoll");
    listen_at(address, first_port, last_port);
}

TcpTransport::~TcpTransport() { abandon(); }

void TcpTransport::abandon() {
    for (PeerState& state : peers_)
        if (state.connection) state.connection->close();
    strangers_.clear();
    for (int* descriptor : {&listener_, &epoll_})
        if (*descriptor >= 0) ::close(std::exchange(*descriptor, -1));
}

void TcpTransport::listen_at(const std::string& address, std::uint16_t first_port, std::uint16_t last_port) {
    int error = EADDRINUSE;
    for (std::uint32_t port = first_port; port <= std::max(first_port, last_port); ++port) {
        const AddressList list(address, static_cast<std::uint16_t>(port));
        const addrinfo& where = *list.first;
        const int socket = ::socket(where.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (socket < 0) throw std::system_error(errno, std::generic_category(), address);
        if (first_port != 0) set_option(socket, SOL_SOCKET, SO_REUSEADDR, 1);
        if (::bind(socket, where.ai_addr, where.ai_addrlen) == 0 && ::listen(socket, backlog) == 0) {
            sockaddr_storage own{};
            socklen_t length = sizeof own;
            ::getsockname(socket, reinterpret_cast<sockaddr*>(&own), &length);
            // The port is at the same position in both families.
            port_ = ntohs(reinterpret_cast<const sockaddr_in*>(&own)->sin_port);
            listener_ = socket;
            return;
        }
        error = errno;
        ::close(socket);
        if (error != EADDRINUSE) break;
    }
    throw std::system_error(error, std::generic_category(), address);
}

void TcpTransport::know_peers(std::vector<TcpPeer> peers) {
    peers_.resize(peers.size());
    for (std::size_t rank = 0; rank < peers.size(); ++rank) peers_[rank].peer = std::move(peers[rank]);
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.ptr = nullptr;  // the listener; before, connections wait in its queue
    ::epoll_ctl(epoll_, EPOLL_CTL_ADD, listener_, &event);
}

void TcpTransport::watch(Connection& connection, std::uint32_t events, bool is_new) {
    if (!is_new && connection.watched == events) return;
    connection.watched = events;
    epoll_event event{};
    event.events = events;
    event.data.ptr = &connection;
    ::epoll_ctl(epoll_, is_new ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, connection.socket, &event);
}

void TcpTransport::accept_all() {
    for (;;) {
        const int socket = ::accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (socket < 0) return;
        configure(socket);
        if (strangers_.size() == most_strangers) {  // the oldest had the most time
            ++rejected_;
            drop_stranger(*strangers_.front());
        }
        auto stream = make_stream_from(socket, tls_.get());
        strangers_.push_back(std::make_unique<Connection>(socket, std::move(stream), Connection::State::strange));
        watch(*strangers_.back(), EPOLLIN, true);
    }
}

void TcpTransport::connect(std::uint32_t peer) {
    PeerState& state = peers_[peer];
    if (state.connection || state.lost || state.declined != Clock::time_point{} || state.peer.address.empty()) return;
    const AddressList list(state.peer.address, state.peer.port);
    const int socket = ::socket(list.first->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (socket < 0) return suspect(peer, text_of(errno));
    configure(socket);
    auto stream = make_stream_to(socket, tls_.get(), state.peer.certificate);
    state.connection = std::make_unique<Connection>(socket, std::move(stream), Connection::State::connecting);
    state.connection->peer = peer;
    if (::connect(socket, list.first->ai_addr, list.first->ai_addrlen) != 0 && errno != EINPROGRESS)
        return suspect(peer, text_of(errno));
    watch(*state.connection, EPOLLOUT | EPOLLIN, true);
}

// ---- letters ---------------------------------------------------------------------------------------------------

void TcpTransport::send(std::uint32_t to, Letter letter, Sink& sink) {
    PeerState& state = peers_[to];
    if (is_gone(to) || state.suspected != Clock::time_point{}) return;
    connect(to);
    if (!state.connection && state.declined == Clock::time_point{}) return;
    if (state.connection && state.connection->closed_for_writing != Clock::time_point{}) return;
    state.letters.push_back(std::move(letter));
    ++unsent_;
    if (state.connection && state.connection->state == Connection::State::open && state.letters.size() == 1)
        write_letters(*state.connection, sink);
}

void TcpTransport::send_to_all(const Letter& letter, Sink& sink) {
    for (std::uint32_t peer = 0; peer < peers_.size(); ++peer)
        if (peers_[peer].connection || peers_[peer].declined != Clock::time_point{}) send(peer, letter, sink);
}

void TcpTransport::detach(std::uint64_t communicator) {
    for (PeerState& state : peers_)
        for (Letter& letter : state.letters)
            if (letter.label.communicator == communicator && letter.owned.empty() && letter.label.bytes > 0)
                letter.owned.assign(letter.data, letter.data + letter.label.bytes);
}

// A socket that is closed while it has unread data drops what its peer has not acknowledged.
std::size_t TcpTransport::undelivered() const {
    std::size_t total = unsent_;
    for (const PeerState& state : peers_) {
        int bytes = 0;
        if (state.connection && state.connection->socket >= 0 &&
            ::ioctl(state.connection->socket, SIOCOUTQ, &bytes) == 0)
            total += static_cast<std::size_t>(bytes);
    }
    return total;
}

bool TcpTransport::progress(Sink& sink) {
    epoll_event events[32];
    const int count = ::epoll_wait(epoll_, events, 32, 0);
    for (int index = 0; index < count; ++index) {
        auto* const connection = static_cast<Connection*>(events[index].data.ptr);
        if (connection == nullptr)
            accept_all();
        else if (connection->socket >= 0)  // not closed by an earlier event
            handle(*connection, events[index].events, sink);
    }
    dropped_.clear();
    return count > 0;
}

// ---- peers that are gone ---------------------------------------------------------------------------------------

// A process that ends in good order says farewell on one connection and then closes all of them. So the end of a
// connection is a loss only if no farewell arrives.
void TcpTransport::suspect(std::uint32_t peer, const std::string& reason) {
    PeerState& state = peers_[peer];
    drop_letters(state);
    if (state.connection) state.connection->close();
    if (state.suspected != Clock::time_point{} || state.said_farewell || state.lost) return;
    state.suspected = Clock::now();
    state.reason = reason;
    has_suspects_ = true;
}

void TcpTransport::drop_letters(PeerState& state) {
    unsent_ -= state.letters.size();
    state.letters.clear();
    state.written = 0;
}

void TcpTransport::check_peers(Sink& sink) {
    const Clock::time_point now = Clock::now();
    has_suspects_ = false;
    for (std::uint32_t peer = 0; peer < peers_.size(); ++peer) {
        PeerState& state = peers_[peer];
        if (state.lost || state.said_farewell) continue;
        if (state.suspected != Clock::time_point{}) {
            if (now - state.suspected >= farewell_delay)
                lose(peer, state.reason, sink);
            else
                has_suspects_ = true;
            continue;
        }
        if (state.connection && state.connection->closed_for_writing != Clock::time_point{}) {
            has_suspects_ = true;
            if (now - state.connection->closed_for_writing >= farewell_delay)
                suspect(peer, state.connection->stream->error());
            continue;
        }
        const bool has_no_connection = !state.connection && state.declined != Clock::time_point{};
        const bool is_connecting = state.connection && state.connection->state == Connection::State::connecting;
        const bool is_open = state.connection && state.connection->state == Connection::State::open;
        const Clock::time_point began = has_no_connection  ? state.declined
                                        : state.connection ? state.connection->began
                                                           : now;
        if (!is_open && now - began > (is_connecting ? longest_connecting : longest_greeting))
            lose(peer, "no connection to " + state.peer.address + " port " + std::to_string(state.peer.port), sink);
        else if (state.connection && !is_connecting && is_unreachable(state.connection->socket))
            lose(peer, "no answer from " + state.peer.address, sink);
    }
    std::erase_if(strangers_, [&](const std::unique_ptr<Connection>& stranger) {
        const bool is_late = now - stranger->began > longest_greeting;
        rejected_ += is_late;
        return is_late;
    });
}

// Returns whether the kernel of the peer no longer acknowledges what is sent: data, or the probes of a full window.
// Not for a socket that is connecting: the kernel has no time of its last acknowledgement, so a single lost packet
// would count as a long silence.
bool TcpTransport::is_unreachable(int socket) const {
    tcp_info info{};
    socklen_t length = sizeof info;
    if (socket < 0 || ::getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &length) != 0) return false;
    const milliseconds silent(info.tcpi_last_ack_recv);
    const bool is_repeating = info.tcpi_unacked > 0 && info.tcpi_retransmits > 0;
    return (is_repeating || info.tcpi_probes > most_probes) && silent >= longest_silence;
}

void TcpTransport::lose(std::uint32_t peer, const std::string& reason, Sink& sink) {
    PeerState& state = peers_[peer];
    if (state.lost) return;
    suspect(peer, reason);
    state.lost = true;
    sink.on_lost(peer, reason);
}

}  // namespace unisono
