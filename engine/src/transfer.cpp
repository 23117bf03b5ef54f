#include "unisono/transfer.hpp"

#include <algorithm>
#include <string>

#include "unisono/copy.hpp"
#include "unisono/reduce.hpp"

namespace unisono {

namespace {

constexpr int type_shift = 56;

std::string in_words(std::uint64_t label) {
    const std::uint64_t type = label >> type_shift;
    return std::to_string(label & ((std::uint64_t{1} << type_shift) - 1)) + " " +
           (type < dtype_names.size() ? dtype_names[type] : "unknown") + " elements";
}

}  // namespace

std::uint64_t transfer_label(DType dtype, std::uint64_t count) {
    return static_cast<std::uint64_t>(dtype) << type_shift | count;
}

Transfers::Transfers(Endpoint& endpoint) : endpoint_(endpoint) {
    const Layout& layout = endpoint.layout;
    const std::uint32_t size = endpoint.settings.geometry.size, rank = endpoint.settings.rank;
    const std::uint32_t depth = endpoint.settings.geometry.depth;
    for (std::uint32_t peer = 0; peer < size; ++peer) {
        writers_.emplace_back(endpoint.channel(layout.transfer(rank, peer)), layout, depth, std::vector{peer});
        readers_.emplace_back(endpoint.channel(layout.transfer(peer, rank)), layout, depth, peer, 0);
    }
}

void Transfers::open(const Transfer& transfer) {
    const Layout& layout = endpoint_.layout;
    const std::uint32_t rank = endpoint_.settings.rank, peer = transfer.peer;
    const std::uint32_t from = transfer.sending ? rank : peer, to = transfer.sending ? peer : rank;
    endpoint_.open_channel(layout.transfer(from, to));
    if (transfer.bytes > MessageHeader::inline_bytes) endpoint_.open(layout.transfer_slots(from, to));
}

bool Transfers::can_move(Transfer& transfer) {
    return transfer.sending ? writers_[transfer.peer].has_room() : readers_[transfer.peer].has_message();
}

bool Transfers::has_message(std::uint32_t peer) {
    endpoint_.open_channel(endpoint_.layout.transfer(peer, endpoint_.settings.rank));
    return readers_[peer].has_message();
}

bool Transfers::advance(Transfer& transfer) {
    const std::uint64_t slot_bytes = endpoint_.settings.geometry.transfer_bytes;
    if (transfer.moved == 0) open(transfer);
    bool moved = false;
    while (!transfer.done && can_move(transfer)) {
        const std::uint64_t bytes = std::min(slot_bytes, transfer.bytes - transfer.moved);
        if (transfer.sending) {
            Writer& writer = writers_[transfer.peer];
            const std::uint64_t slot = writer.written() % endpoint_.settings.geometry.depth;
            const std::uint64_t offset =
                endpoint_.layout.transfer_slots(endpoint_.settings.rank, transfer.peer).offset + slot * slot_bytes;
            std::byte* payload =
                bytes <= MessageHeader::inline_bytes ? writer.inline_payload() : endpoint_.at(offset);
            if (bytes > 0) copy_bytes(payload, transfer.data + transfer.moved, bytes);
            writer.publish(bytes, offset, transfer.label);
        } else {
            Reader& reader = readers_[transfer.peer];
            const Message message = reader.message();
            if (message.fingerprint != transfer.label || message.bytes != bytes)
                report_mismatch(transfer, message.fingerprint);
            if (bytes > 0) copy_bytes(transfer.data + transfer.moved, endpoint_.data_of(message), bytes);
            reader.release();
        }
        endpoint_.rouse(transfer.peer);
        transfer.moved += bytes;
        transfer.done = transfer.moved == transfer.bytes;
        moved = true;
    }
    return moved;
}

void Transfers::report_mismatch(const Transfer& transfer, std::uint64_t sent) {
    endpoint_.fail(Fault::mismatch, static_cast<int>(transfer.peer),
                   "rank " + std::to_string(transfer.peer) + " sends " + in_words(sent) + "; rank " +
                       std::to_string(endpoint_.settings.rank) + " receives " + in_words(transfer.label) +
                       ": both sides of a transfer must name the same type and number of elements");
}

void Transfers::finish(Transfer& transfer, Clock::time_point deadline) {
    while (!transfer.done)
        if (!advance(transfer))
            endpoint_.wait([&] { return can_move(transfer); }, {transfer.peer, 0, deadline, false});
}

}  // namespace unisono
