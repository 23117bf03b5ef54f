// The outbox of send and recv: writes messages to the channels.
#pragma once

#include <vector>

#include "unisono/channel.hpp"
#include "unisono/endpoint.hpp"
#include "unisono/transfer.hpp"

namespace unisono {

class Outbox {
  public:
    explicit Outbox(Endpoint& endpoint);

    // Sends as much as possible without waiting; returns whether any byte moved. Messages to the same peer must be sent
    // one after the other.
    bool advance(Transfer& transfer);
    // Waits until the whole message is in the channel.
    void finish(Transfer& transfer, const Deadline& deadline);

  private:
    void open(const Transfer& transfer);

    Endpoint& endpoint_;
    std::vector<Writer> writers_;
};

}  // namespace unisono
