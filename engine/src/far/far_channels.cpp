#include "unisono/far_channels.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace unisono {

FarChannels::FarChannels(Courier& courier, Endpoint& endpoint)
    : courier_(courier), endpoint_(endpoint), peers_(endpoint.settings.geometry.size),
      neglected_(std::make_unique<std::atomic<bool>[]>(endpoint.settings.geometry.size)) {
    for (std::uint32_t rank = 0; rank < size(); ++rank) {
        peers_[rank].far = endpoint.settings.far[rank];
        peers_[rank].job_rank = endpoint.settings.courier_ranks[rank];
        peers_[rank].out = std::vector<OutChannel>(transfers() + 1);
        peers_[rank].in = std::vector<InChannel>(transfers() + 1);
        ranks_[peers_[rank].job_rank] = rank;
        // A far rank always counts as asleep, so that whatever is written for it is reported to `push`.
        if (peers_[rank].far) endpoint.board(rank).asleep.store(1, std::memory_order_relaxed);
    }
}

FarChannels::~FarChannels() { courier_.remove(*this); }

// ---- called by the endpoint ------------------------------------------------------------------------------------

void FarChannels::push(std::uint32_t rank) {
    if (courier_.try_hold([&] { service(rank); })) return;
    neglected_[rank].store(true, std::memory_order_release);
    courier_.neglected_.store(true, std::memory_order_seq_cst);
    courier_.attend();
}

void FarChannels::opened(std::uint32_t rank, std::size_t track, bool incoming) {
    const Courier::Hold hold(courier_);
    Peer& peer = peers_[rank];
    if (incoming)
        peer.in[track].open = true;
    else
        peer.out[track].open = true;
    if (!courier_.lost_.contains(peer.job_rank)) courier_.transport_->connect(peer.job_rank);
    service(rank);
}

void FarChannels::ask_entry(std::uint32_t rank, std::uint64_t call) {
    const Courier::Hold hold(courier_);
    send(rank, LetterKind::asks_entry, call);
}

std::string FarChannels::lost(std::uint32_t rank) {
    const Courier::Hold hold(courier_);
    const auto found = courier_.lost_.find(peers_[rank].job_rank);
    return found == courier_.lost_.end() ? std::string() : found->second;
}

std::string FarChannels::host(std::uint32_t rank) const { return courier_.hosts_[peers_[rank].job_rank]; }

// The letter that closes a communicator may overtake messages, so it counts them.
bool FarChannels::has_left(std::uint32_t rank) {
    const Courier::Hold hold(courier_);
    const Peer& peer = peers_[rank];
    if (!peer.closed) return false;
    service(rank);
    std::uint64_t received = 0;
    for (const InChannel& in : peer.in) received += in.received;
    return received >= *peer.closed;
}

void FarChannels::leave() {
    {
        const Courier::Hold hold(courier_);
        leaving_ = true;  // credit no longer matters: the readers keep what does not fit
        for (std::uint32_t rank = 0; rank < size(); ++rank) {
            service(rank);
            if (!peers_[rank].far || courier_.lost_.contains(peers_[rank].job_rank)) continue;
            Letter closed{label_to(peers_[rank], LetterKind::closed), nullptr, {}};
            for (const OutChannel& out : peers_[rank].out) closed.label.number += out.sent;
            courier_.send(peers_[rank].job_rank, std::move(closed));
        }
        for (Peer& peer : peers_) peer.in = std::vector<InChannel>(transfers() + 1);  // returns all payloads
    }
    courier_.remove(*this);
}

// ---- channels --------------------------------------------------------------------------------------------------

void FarChannels::service(std::uint32_t rank) {
    Peer& peer = peers_[rank];
    if (!peer.far) return;
    for (std::size_t track = 0; track <= transfers(); ++track) {
        if (peer.out[track].open) send_messages(peer, rank, track);
        if (peer.in[track].open) take_back(peer, rank, track);
    }
    if (peer.asked_entry != 0) answer_questions();
}

void FarChannels::service_neglected() {
    for (std::uint32_t rank = 0; rank < size(); ++rank)
        if (neglected_[rank].exchange(false, std::memory_order_acquire)) service(rank);
}

void FarChannels::send_messages(Peer& peer, std::uint32_t rank, std::size_t track) {
    if (courier_.lost_.contains(peer.job_rank)) return;
    OutChannel& out = peer.out[track];
    const Geometry& geometry = endpoint_.settings.geometry;
    const MessageHeader* const slots = headers(channel_number(own_rank(), rank, track));
    while (leaving_ || out.sent - out.acknowledged < geometry.depth) {
        // The writer is at most `depth` messages ahead of what has left, so a slot is not written again before that.
        if (out.sent - out.left >= geometry.depth) break;
        const MessageHeader& header = slots[out.sent % geometry.depth];
        if (header.ready.load(std::memory_order_acquire) != out.sent + 1) break;
        Letter letter{label_to(peer, track == transfers() ? LetterKind::transfer : LetterKind::message, track),
                      header.payload,
                      {}};
        letter.label.number = out.sent;
        letter.label.fingerprint = header.fingerprint;
        letter.label.bytes = header.bytes;
        letter.label.tag = track == transfers() ? header.offset : track;
        if (header.bytes > MessageHeader::inline_bytes)
            letter.data = track != transfers()
                              ? endpoint_.at(header.offset)
                              : endpoint_.at(endpoint_.layout.transfer_slots(own_rank(), rank).offset) +
                                    out.sent % geometry.depth * geometry.transfer_bytes;
        peer.in[track].reported = letter.label.taken;
        ++out.sent;
        sent_bytes_.fetch_add(header.bytes, std::memory_order_relaxed);
        courier_.send(peer.job_rank, std::move(letter));
    }
}

void FarChannels::on_sent(std::uint32_t job_rank, const Label& label) {
    const std::uint32_t rank = rank_of(job_rank);
    const std::size_t track = track_of(label);
    OutChannel& out = peers_[rank].out[track];
    taken(channel_number(own_rank(), rank, track)).messages.store(++out.left, std::memory_order_release);
    endpoint_.wake_if_asleep(own_rank());
}

// Returns the payloads that the endpoint has taken, publishes further letters, and grants credit.
void FarChannels::take_back(Peer& peer, std::uint32_t rank, std::size_t track) {
    InChannel& in = peer.in[track];
    const std::uint64_t now_taken =
        taken(channel_number(rank, own_rank(), track)).messages.load(std::memory_order_acquire);
    for (; in.released < now_taken; ++in.released) in.held.pop_front();
    if (!in.arrived.empty()) publish_arrived(peer, rank, track);
    if (now_taken - in.reported >= endpoint_.settings.geometry.depth / 2) {
        Letter letter{label_to(peer, LetterKind::credit, track), nullptr, {}};
        letter.label.tag = track;
        in.reported = letter.label.taken;
        courier_.send(peer.job_rank, std::move(letter));
    }
}

void FarChannels::on_message(Peer& peer, std::uint32_t rank, std::size_t track, const Label& label, Payload payload) {
    ++peer.in[track].received;
    Arrived& arrived = peer.in[track].arrived[label.number];
    arrived.label = label;
    if (label.bytes > MessageHeader::inline_bytes)
        arrived.payload = std::move(payload);
    else if (label.bytes > 0)
        std::memcpy(arrived.short_payload.data(), payload.data(), label.bytes);
    if (peer.in[track].open) publish_arrived(peer, rank, track);
}

void FarChannels::publish_arrived(Peer& peer, std::uint32_t rank, std::size_t track) {
    InChannel& in = peer.in[track];
    const Geometry& geometry = endpoint_.settings.geometry;
    const std::size_t channel = channel_number(rank, own_rank(), track);
    MessageHeader* const slots = headers(channel);
    const std::uint64_t now_taken = taken(channel).messages.load(std::memory_order_acquire);
    bool any = false;
    while (!in.arrived.empty() && in.arrived.begin()->first == in.published &&
           in.published - now_taken < geometry.depth) {
        Arrived& arrived = in.arrived.begin()->second;
        const Label& label = arrived.label;
        MessageHeader& header = slots[in.published % geometry.depth];
        header.fingerprint = label.fingerprint;
        header.bytes = label.bytes;
        header.offset = label.tag;
        if (label.bytes <= MessageHeader::inline_bytes) {
            std::memcpy(header.payload, arrived.short_payload.data(), label.bytes);
        } else if (track != transfers()) {
            header.offset = endpoint_.offset_of(arrived.payload.data());
        } else {
            std::memcpy(endpoint_.at(endpoint_.layout.transfer_slots(rank, own_rank()).offset) +
                            in.published % geometry.depth * geometry.transfer_bytes,
                        arrived.payload.data(), label.bytes);
            arrived.payload = {};
        }
        in.held.push_back(std::move(arrived.payload));
        in.arrived.erase(in.arrived.begin());
        header.ready.store(++in.published, std::memory_order_release);
        any = true;
    }
    if (any) endpoint_.wake_if_asleep(own_rank());
}

// ---- letters ---------------------------------------------------------------------------------------------------

void FarChannels::on_letter(const Label& label, Payload payload) {
    const std::uint32_t rank = rank_of(label.from);
    if (rank >= size()) return;
    Peer& peer = peers_[rank];
    Board& board = endpoint_.board(rank);
    // Other processes of this host store the number too, and it only grows.
    std::uint64_t known = board.calls.load(std::memory_order_relaxed);
    while (known < label.calls && !board.calls.compare_exchange_weak(known, label.calls, std::memory_order_release)) {
    }
    const auto acknowledge = [&](std::size_t track) {
        peer.out[track].acknowledged = std::max(peer.out[track].acknowledged, label.taken);
        if (peer.out[track].open) send_messages(peer, rank, track);
    };
    switch (label.kind) {
        case LetterKind::message:
        case LetterKind::transfer: {
            const std::size_t track = track_of(label);
            if (track > transfers()) break;  // no rank of this job sends such a letter
            on_message(peer, rank, track, label, std::move(payload));
            acknowledge(track);
            break;
        }
        case LetterKind::credit:
            if (label.tag <= transfers()) acknowledge(label.tag);
            break;
        case LetterKind::asks_entry:
            peer.asked_entry = std::max(peer.asked_entry, label.number);
            answer_questions();
            break;
        case LetterKind::entered: endpoint_.wake_if_asleep(own_rank()); break;
        case LetterKind::closed:
            // A process that has left answers questions with a letter that counts no messages.
            if (!peer.closed) peer.closed = label.number;
            endpoint_.wake_if_asleep(own_rank());
            break;
        case LetterKind::asks_state: send_state(rank); break;
        case LetterKind::state: write_state(rank, label, payload.data()); break;
        case LetterKind::proposal:
        case LetterKind::verdict: on_fault(rank, label, payload.data()); break;
        default: break;  // for the transport
    }
}

bool FarChannels::answer_questions() {
    const std::uint64_t calls = endpoint_.board(own_rank()).calls.load(std::memory_order_acquire);
    bool any = false;
    for (std::uint32_t rank = 0; rank < size(); ++rank) {
        Peer& peer = peers_[rank];
        if (peer.asked_entry == 0) continue;
        if (calls >= peer.asked_entry) {
            peer.asked_entry = 0;
            send(rank, LetterKind::entered, calls);
        } else {
            any = true;
        }
    }
    return any;
}

std::size_t FarChannels::track_of(const Label& label) const {
    return label.kind == LetterKind::transfer ? transfers() : label.tag;
}

Label FarChannels::label_to(const Peer& peer, LetterKind kind, std::size_t track) const {
    Label label{};
    label.kind = kind;
    label.from = peers_[own_rank()].job_rank;
    label.communicator = endpoint_.settings.number;
    label.calls = endpoint_.board(own_rank()).calls.load(std::memory_order_relaxed);
    if (peer.in[track].open)
        label.taken =
            taken(channel_number(rank_of(peer.job_rank), own_rank(), track)).messages.load(std::memory_order_acquire);
    return label;
}

void FarChannels::send(std::uint32_t rank, LetterKind kind, std::uint64_t number, std::vector<std::byte> payload) {
    const Peer& peer = peers_[rank];
    if (courier_.lost_.contains(peer.job_rank)) return;
    Letter letter{label_to(peer, kind), nullptr, std::move(payload)};
    letter.label.number = number;
    letter.label.bytes = letter.owned.size();
    courier_.send(peer.job_rank, std::move(letter));
}

// ---- locations -------------------------------------------------------------------------------------------------

MessageHeader* FarChannels::headers(std::size_t channel) const {
    return reinterpret_cast<MessageHeader*>(endpoint_.channel(channel) + endpoint_.layout.header(0));
}

Taken& FarChannels::taken(std::size_t channel) const {
    return *reinterpret_cast<Taken*>(endpoint_.channel(channel) + endpoint_.layout.taken(0));
}

std::uint32_t FarChannels::rank_of(std::uint32_t job_rank) const {
    const auto found = ranks_.find(job_rank);
    return found == ranks_.end() ? size() : found->second;
}

}  // namespace unisono
