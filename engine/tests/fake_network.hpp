// A network inside one process, for the courier: letters are delayed at random, and ranks can be cut off.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <vector>

#include "unisono/transport.hpp"

namespace unisono::tests {

class FakeNetwork {
  public:
    FakeNetwork(std::uint32_t size, std::uint32_t seed) : ports_(size), random_(seed) {}
    // Returns the transport of one rank.
    std::unique_ptr<Transport> transport(std::uint32_t rank);
    // From now on, no letter of this rank arrives, and none reaches it. The others notice.
    void cut_off(std::uint32_t rank);

  private:
    friend class FakeTransport;
    using Clock = std::chrono::steady_clock;
    struct Mail {
        Clock::time_point arrives;
        std::uint32_t from;
        Label label;
        std::vector<std::byte> payload;
    };
    struct Port {
        std::deque<Mail> mail;
        int event = -1;  // an eventfd, readable while there is mail
    };

    std::mutex mutex_;
    std::vector<Port> ports_;
    std::set<std::uint32_t> cut_off_;
    std::minstd_rand random_;
};

}  // namespace unisono::tests
