// What this rank sends to others, outside of collectives.
#pragma once

#include <vector>

#include "unisono/channel.hpp"
#include "unisono/endpoint.hpp"
#include "unisono/transfer.hpp"

namespace unisono {

class Outbox {
  public:
    explicit Outbox(Endpoint& endpoint);

    // Moves what can be moved without waiting; says whether anything did. Messages to the same peer must be advanced one
    // after the other.
    bool advance(Transfer& transfer);
    // Waits until the message is on its way.
    void finish(Transfer& transfer, Clock::time_point deadline);

  private:
    void open(const Transfer& transfer);

    Endpoint& endpoint_;
    std::vector<Writer> writers_;
};

}  // namespace unisono
