#include "hosts.hpp"

#include <utility>

#include "unisono/tcp_transport.hpp"
#include "unisono/ucx_transport.hpp"

namespace unisono::tests {

namespace {

std::uint32_t host_of(std::uint32_t rank) { return network_in_use == Network::none ? 0 : rank % 2; }

Ticket ticket(std::uint32_t from, std::uint32_t to) {
    Ticket made{};
    made[0] = static_cast<std::byte>(from);
    made[1] = static_cast<std::byte>(to);
    return made;
}

// Returns transports over TCP or, if it is in use, over UCX. One rank has TCP only.
std::vector<std::unique_ptr<Transport>> real_transports(std::uint32_t size) {
    std::vector<std::unique_ptr<TcpTransport>> made;
    for (std::uint32_t rank = 0; rank < size; ++rank)
        made.push_back(std::make_unique<TcpTransport>(rank, "127.0.0.1", 0, 0));
    std::vector<std::vector<TcpPeer>> peers(size, std::vector<TcpPeer>(size));
    for (std::uint32_t rank = 0; rank < size; ++rank)
        for (std::uint32_t peer = 0; peer < size; ++peer)
            if (host_of(peer) != host_of(rank))
                peers[rank][peer] = {"127.0.0.1", made[peer]->port(), ticket(rank, peer), ticket(peer, rank)};
    std::vector<std::unique_ptr<Transport>> transports;
    for (std::uint32_t rank = 0; rank < size; ++rank) {
        if (network_in_use == Network::ucx && (rank != 2 || size == 3)) {
            auto over_ucx = std::make_unique<UcxTransport>(ucx_in_use, std::move(made[rank]), rank, size);
            over_ucx->know_peers(peers[rank]);
            transports.push_back(std::move(over_ucx));
        } else {
            made[rank]->know_peers(peers[rank]);
            transports.push_back(std::move(made[rank]));
        }
    }
    return transports;
}

}  // namespace

Hosts::Hosts(Geometry geometry) {
    const std::uint32_t size = geometry.size;
    if (network_in_use != Network::none) geometry.tracks = 3;
    for (std::uint32_t host = 0; host <= host_of(1); ++host)
        memories_.push_back(std::make_unique<SharedMemory>(geometry));
    std::vector<std::vector<Settings>> of_host;
    for (const auto& memory : memories_) of_host.push_back(memory->for_threads());
    for (std::uint32_t rank = 0; rank < size; ++rank) settings_.push_back(of_host[host_of(rank)][rank]);
    if (network_in_use == Network::none) return;

    std::vector<std::string> names;
    for (std::uint32_t rank = 0; rank < size; ++rank) names.push_back(host_of(rank) == 0 ? "first" : "second");
    std::vector<std::unique_ptr<Transport>> transports;
    if (network_in_use == Network::tcp || network_in_use == Network::ucx) {
        transports = real_transports(size);
    } else {
        fake_ = std::make_unique<FakeNetwork>(size, size);
        for (std::uint32_t rank = 0; rank < size; ++rank) transports.push_back(fake_->transport(rank));
    }
    for (std::uint32_t rank = 0; rank < size; ++rank) {
        couriers_.push_back(std::make_unique<Courier>(std::move(transports[rank]), rank, names));
        Settings& settings = settings_[rank];
        settings.courier = couriers_.back().get();
        settings.number = 1;
        for (std::uint32_t peer = 0; peer < size; ++peer) {
            settings.far.push_back(host_of(peer) != host_of(rank));
            settings.courier_ranks.push_back(peer);
            if (settings.far.back()) settings.processes[peer] = 0;
        }
    }
}

}  // namespace unisono::tests
