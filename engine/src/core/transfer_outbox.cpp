#include "unisono/transfer_outbox.hpp"

#include <algorithm>

#include "unisono/copy.hpp"

namespace unisono {

Outbox::Outbox(Endpoint& endpoint) : endpoint_(endpoint) {
    const Layout& layout = endpoint.layout;
    const std::uint32_t rank = endpoint.settings.rank, depth = endpoint.settings.geometry.depth;
    for (std::uint32_t peer = 0; peer < endpoint.settings.geometry.size; ++peer)
        writers_.emplace_back(endpoint.channel(layout.transfer(rank, peer)), layout, depth, std::vector{peer});
}

void Outbox::open(const Transfer& transfer) {
    const Layout& layout = endpoint_.layout;
    const std::uint32_t rank = endpoint_.settings.rank, peer = transfer.peer;
    endpoint_.open_channel(layout.transfer(rank, peer));
    if (transfer.bytes > MessageHeader::inline_bytes) endpoint_.open(layout.transfer_slots(rank, peer));
}

bool Outbox::advance(Transfer& transfer) {
    const Geometry& geometry = endpoint_.settings.geometry;
    Writer& writer = writers_[transfer.peer];
    if (transfer.moved == 0) {
        open(transfer);
        transfer.number = writer.written();
    }
    bool moved = false;
    while (!transfer.done && writer.has_room()) {
        const std::uint64_t bytes = std::min(geometry.transfer_bytes, transfer.bytes - transfer.moved);
        std::byte* payload = writer.inline_payload();
        if (bytes > MessageHeader::inline_bytes)
            payload = endpoint_.at(endpoint_.layout.transfer_slots(endpoint_.settings.rank, transfer.peer).offset) +
                      writer.written() % geometry.depth * geometry.transfer_bytes;
        if (bytes > 0) copy_bytes(payload, transfer.data + transfer.moved, bytes);
        endpoint_.traffic.count_in_transfer(bytes);
        if (endpoint_.traffic.is_limited()) [[unlikely]]
            endpoint_.send_slowly(bytes);
        writer.publish(bytes, transfer.tag, transfer.label);
        endpoint_.wake_if_asleep(transfer.peer);
        transfer.moved += bytes;
        transfer.done = transfer.moved == transfer.bytes;
        moved = true;
    }
    if (transfer.done && transfer.began != 0)
        endpoint_.event_logs.put_transfer(transfer, EventKind::send, transfer.peer);
    return moved;
}

void Outbox::finish(Transfer& transfer, const Deadline& deadline) {
    while (!transfer.done)
        if (!advance(transfer))
            endpoint_.wait([&] { return writers_[transfer.peer].has_room(); },
                           {transfer.peer, transfer.tag, deadline, false});
    endpoint_.finish_call();
}

}  // namespace unisono
