// Ranks on several hosts: each host has separate shared memory, and each rank a courier.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "fake_network.hpp"
#include "ranks.hpp"
#include "unisono/courier.hpp"
#include "unisono/ucx_context.hpp"

namespace unisono::tests {

enum class Network { none, fake, tcp, ucx };  // none: all ranks are on one host

// The network of the scenarios that run at the moment.
inline Network network_in_use = Network::none;
// For Network::ucx.
inline std::shared_ptr<UcxContext> ucx_in_use;

// The hosts of a communicator. Ranks are placed in turn on two hosts, so that every scenario has near and far peers.
class Hosts {
  public:
    explicit Hosts(Geometry geometry);  // with several tracks, if there is a network
    // For ranks that are threads.
    const std::vector<Settings>& settings() const { return settings_; }
    Courier& courier(std::uint32_t rank) { return *couriers_[rank]; }
    // Ends a courier without a farewell. For the fake network.
    void cut_off(std::uint32_t rank) { fake_->cut_off(rank); }

  private:
    std::vector<std::unique_ptr<SharedMemory>> memories_;
    std::unique_ptr<FakeNetwork> fake_;
    std::vector<std::unique_ptr<Courier>> couriers_;  // destroyed before the network
    std::vector<Settings> settings_;
};

}  // namespace unisono::tests
