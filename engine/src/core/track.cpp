#include "unisono/track.hpp"

#include <algorithm>

#include "encoded_chunks.hpp"
#include "plain_chunks.hpp"
#include "unisono/copy.hpp"

namespace unisono {

Track::Track(Endpoint& endpoint, std::uint32_t number, CopyStrategy& copy_strategy, CallEventWriter& events)
    : endpoint_(endpoint), copy_strategy_(copy_strategy), events_(events), number_(number) {
    const Layout& layout = endpoint.layout;
    const std::uint32_t size = endpoint.settings.geometry.size, rank = endpoint.settings.rank;
    const std::uint32_t depth = endpoint.settings.geometry.depth;
    // The readers of a channel to all are the other ranks of the host, in order.
    std::vector<std::uint32_t> others;
    for (std::uint32_t peer = 0; peer < size; ++peer)
        if (peer != rank && !endpoint.settings.is_far(peer)) others.push_back(peer);
    std::size_t before = 0;  // ranks of this host before this one
    while (before < others.size() && others[before] < rank) ++before;
    for (std::uint32_t peer = 0; peer < size; ++peer) {
        writers_.emplace_back(endpoint.channel(layout.between(rank, peer, number)), layout, depth, std::vector{peer});
        readers_.emplace_back(endpoint.channel(layout.between(peer, rank, number)), layout, depth, peer, 0);
        readers_of_all_.emplace_back(endpoint.channel(layout.to_all(peer, number)), layout, depth, peer,
                                     endpoint.settings.is_far(peer) ? 0 : before - (rank > peer));
    }
    writer_to_all_ = Writer(endpoint.channel(layout.to_all(rank, number)), layout, depth, others);
    staging_ = Staging(layout.staging(rank, number).offset, layout.front_of_staging(rank, number).bytes);
}

void Track::open(const Plan& plan) {
    const Program& program = *plan.program;
    const Layout& layout = endpoint_.layout;
    const std::uint32_t rank = endpoint_.settings.rank;
    const auto open = [&](const ChannelUse& use, bool writes) {
        endpoint_.open_channel(use.reach == Reach::all ? layout.to_all(writes ? rank : use.peer, number_)
                               : writes                ? layout.between(rank, use.peer, number_)
                                                       : layout.between(use.peer, rank, number_));
    };
    std::uint64_t sent_bytes = 0;  // in a pass, at most, including the gaps between messages
    for (const Instruction& op : program.instructions) {
        for (int source = 0; source < op.sources; ++source) open(program.channels[op.from + source], false);
        if (op.to == no_channel) continue;
        open(program.channels[op.to], true);
        sent_bytes += op.chunks * plan.segment_bytes + cache_line_bytes + cache_line_pair_bytes;
    }
    if (sent_bytes > 0 && plan.segment_bytes * program.largest_message > MessageHeader::inline_bytes) {
        // Twice, because the end of the area may be too short for a message; times `depth`, because that many calls of
        // a root, which does not wait for its readers, may be in flight.
        const Layout::Range front = layout.front_of_staging(rank, number_), whole = layout.staging(rank, number_);
        const bool is_short =
            plan.wire == Wire::none && sent_bytes * 2 * endpoint_.settings.geometry.depth <= front.bytes;
        endpoint_.open(is_short ? front : whole);
        if (!is_short) staging_.grow(whole.bytes);
    }
    if (plan.work_bytes > work_bytes_) {
        constexpr std::size_t alignment = 64;
        work_memory_ = std::make_unique<std::byte[]>(plan.work_bytes + alignment);
        const auto address = reinterpret_cast<std::uintptr_t>(work_memory_.get());
        work_ = work_memory_.get() + (alignment - address % alignment) % alignment;
        work_bytes_ = plan.work_bytes;
    }
}

void Track::begin(const Call& call) {
    buffers_[static_cast<int>(Buffer::input)] = call.input;
    buffers_[static_cast<int>(Buffer::output)] = call.output;
    buffers_[static_cast<int>(Buffer::work)] = work_;
    fingerprint_ = call.fingerprint;
    deadline_ = call.deadline;
    has_pass_ = false;  // the last call may have failed
}

// ---- passes ----------------------------------------------------------------------------------------------------

void Track::run_passes(const Plan& plan) {
    if (plan.wire == Wire::none)
        run_all<PlainChunks>(plan);
    else
        run_all<EncodedChunks>(plan);
}

template <typename Chunks>
void Track::run_all(const Plan& plan) {
    Chunks chunks{*this, plan};
    for (std::uint64_t pass = 0; pass < plan.passes; ++pass) {
        if (events_.on()) [[unlikely]]
            events_.begin_pass(pass);
        for (const Instruction& op : plan.program->instructions) execute(chunks, op, pass);
        finish(chunks, pass);
    }
}

void Track::start(std::uint64_t pass) {
    has_pass_ = true;
    pass_ = pass;
    next_ = 0;
}

bool Track::advance(const Plan& plan) {
    return plan.wire == Wire::none ? advance_with<PlainChunks>(plan) : advance_with<EncodedChunks>(plan);
}

template <typename Chunks>
bool Track::advance_with(const Plan& plan) {
    Chunks chunks{*this, plan};
    const std::vector<Instruction>& instructions = plan.program->instructions;
    bool ran = false;
    for (; next_ < instructions.size(); ++next_, ran = true) {
        if (need_of(chunks, instructions[next_])) return ran;
        if (events_.on()) [[unlikely]]
            events_.switch_to(pass_, next_);
        execute(chunks, instructions[next_], pass_);
    }
    finish(chunks, pass_);
    has_pass_ = false;
    return true;
}

std::optional<Track::Need> Track::need(const Plan& plan) {
    const Instruction& op = plan.program->instructions[next_];
    if (plan.wire == Wire::none) {
        PlainChunks chunks{*this, plan};
        return need_of(chunks, op);
    }
    EncodedChunks chunks{*this, plan};
    return need_of(chunks, op);
}

template <typename Chunks>
std::optional<Track::Need> Track::need_of(Chunks& chunks, const Instruction& op) {
    if (op.sources == 0 && op.to == no_channel) return {};
    const Program& program = *chunks.plan.program;
    const std::uint64_t bytes = message_bytes(chunks, op, pass_);
    if (bytes == 0 && chunks.plan.skips_empty) return {};
    for (int source = 0; source < op.sources; ++source) {
        const Reader& from = reader(program.channels[op.from + source]);
        if (!from.has_message()) return Need{EventKind::awaits_message, from.writer, op.step};
    }
    if (op.to == no_channel) return {};
    Writer& to = writer(program.channels[op.to]);
    if (!to.has_room()) return Need{EventKind::awaits_room, to.slowest(), op.step};
    // The alignment of the payload is not known here, so there must be room for any (see `acquire`).
    const std::uint64_t room = staging_.is_roomy_for(bytes) ? bytes + cache_line_bytes - 1 : bytes;
    if (bytes > MessageHeader::inline_bytes && !staging_.has_room(room))
        return Need{EventKind::awaits_room, staging_.slowest(), op.step};
    return {};
}

// ---- instructions ----------------------------------------------------------------------------------------------

template <typename Chunks>
void Track::execute(Chunks& chunks, const Instruction& op, std::uint64_t pass) {
    switch (op.kind) {
        case Kind::send: send(chunks, op, pass); break;
        case Kind::receive: receive(chunks, op, pass); break;
        case Kind::reduce: reduce(chunks, op, pass); break;
        case Kind::copy:
        case Kind::combine: move_inside(chunks.plan, op, pass); break;
    }
    if (events_.on()) [[unlikely]]
        events_.end_instruction();
}

template <typename Chunks>
void Track::finish(Chunks& chunks, std::uint64_t pass) {
    chunks.finish_pass(pass);
    if (chunks.plan.divide != nullptr) divide_results(chunks.plan, pass);
}

Track::Slice Track::slice(const Plan& plan, std::uint32_t part, std::uint64_t pass) const {
    const Plan::Extent& extent = plan.extents[part];
    const Buffer buffer = plan.program->parts[part];
    const std::uint64_t done = pass * plan.segment_bytes;
    const std::uint64_t bytes = extent.length > done ? std::min(extent.length - done, plan.segment_bytes) : 0;
    // A work part holds only the segment of the running pass.
    const std::uint64_t offset = extent.offset + (buffer == Buffer::work ? 0 : done);
    return {buffers_[static_cast<int>(buffer)] + offset, bytes};
}

template <typename Chunks>
std::uint64_t Track::message_bytes(const Chunks& chunks, const Instruction& op, std::uint64_t pass) const {
    std::uint64_t bytes = 0;
    const Operand* operands = chunks.plan.program->operands.data() + op.operands;
    for (std::size_t chunk = 0; chunk < op.chunks; ++chunk)
        bytes += chunks.encoded(slice(chunks.plan, operands[chunk].left, pass).bytes);
    return bytes;
}

template <typename Chunks>
void Track::send(Chunks& chunks, const Instruction& op, std::uint64_t pass) {
    const Plan& plan = chunks.plan;
    const std::uint64_t bytes = message_bytes(chunks, op, pass);
    if (bytes == 0 && plan.skips_empty) return;
    Writer& to = writer(plan.program->channels[op.to]);
    const Operand* operands = plan.program->operands.data() + op.operands;
    std::byte* payload = acquire(to, bytes, op.step, chunks.source_of(op, pass, bytes));
    for (std::size_t chunk = 0; chunk < op.chunks; ++chunk) {
        const Slice from = slice(plan, operands[chunk].left, pass);
        std::byte* const out = operands[chunk].out != no_part ? slice(plan, operands[chunk].out, pass).data : nullptr;
        chunks.send(payload, out, from, plan.streams && operands[chunk].final);
        payload += chunks.encoded(from.bytes);
    }
    publish(to, bytes);
}

template <typename Chunks>
void Track::receive(Chunks& chunks, const Instruction& op, std::uint64_t pass) {
    const Plan& plan = chunks.plan;
    const std::uint64_t bytes = message_bytes(chunks, op, pass);
    if (bytes == 0 && plan.skips_empty) return;
    Reader& from = reader(plan.program->channels[op.from]);
    const std::byte* data = await_message(from, bytes, op.step);
    if (op.to != no_channel) {  // forwarded as it is
        Writer& to = writer(plan.program->channels[op.to]);
        copy_strategy_.put(acquire(to, bytes, op.step, data), data, bytes);
        publish(to, bytes);
    }
    const Operand* operands = plan.program->operands.data() + op.operands;
    for (std::size_t chunk = 0; chunk < op.chunks; ++chunk) {
        const std::uint64_t length = slice(plan, operands[chunk].left, pass).bytes;
        if (operands[chunk].out != no_part)
            chunks.receive(slice(plan, operands[chunk].out, pass).data, data, length,
                           plan.streams && operands[chunk].final);
        data += chunks.encoded(length);
    }
    release(from);
}

template <typename Chunks>
void Track::reduce(Chunks& chunks, const Instruction& op, std::uint64_t pass) {
    const Plan& plan = chunks.plan;
    const std::uint64_t bytes = message_bytes(chunks, op, pass);
    if (bytes == 0 && plan.skips_empty) return;
    const ChannelUse* sources = plan.program->channels.data() + op.from;
    const void* messages[most_sources];
    for (int source = 0; source < op.sources; ++source)
        messages[source] = await_message(reader(sources[source]), bytes, op.step);
    Writer* to = op.to != no_channel ? &writer(plan.program->channels[op.to]) : nullptr;
    const Operand* operands = plan.program->operands.data() + op.operands;
    std::byte* payload = to != nullptr ? acquire(*to, bytes, op.step, chunks.source_of(op, pass, bytes)) : nullptr;
    for (std::size_t chunk = 0; chunk < op.chunks; ++chunk) {
        const Slice left = slice(plan, operands[chunk].left, pass);
        std::byte* const out = operands[chunk].out != no_part ? slice(plan, operands[chunk].out, pass).data : nullptr;
        chunks.reduce(payload, out, left, messages, op.sources);
        const std::uint64_t length = chunks.encoded(left.bytes);
        if (payload != nullptr) payload += length;
        for (int source = 0; source < op.sources; ++source)
            messages[source] = static_cast<const std::byte*>(messages[source]) + length;
    }
    if (to != nullptr) publish(*to, bytes);
    for (int source = 0; source < op.sources; ++source) release(reader(sources[source]));
}

void Track::move_inside(const Plan& plan, const Instruction& op, std::uint64_t pass) {
    const Operand* operands = plan.program->operands.data() + op.operands;
    for (std::size_t chunk = 0; chunk < op.chunks; ++chunk) {
        const Slice left = slice(plan, operands[chunk].left, pass), out = slice(plan, operands[chunk].out, pass);
        if (op.kind == Kind::combine) {
            const void* right = slice(plan, operands[chunk].right, pass).data;
            plan.combine(out.data, nullptr, left.data, &right, 1, left.bytes / plan.element_bytes);
        } else if (out.data != left.data) {
            if (plan.streams && operands[chunk].final)
                copy_streaming(out.data, left.data, left.bytes);
            else
                copy_bytes(out.data, left.data, left.bytes);
        }
    }
}

void Track::divide_results(const Plan& plan, std::uint64_t pass) {
    for (const std::uint32_t part : plan.program->results) {
        const Slice result = slice(plan, part, pass);
        plan.divide(result.data, result.data, endpoint_.settings.geometry.size, result.bytes / plan.element_bytes);
    }
    if (events_.on()) [[unlikely]]
        events_.end_results();
}

// ---- channels --------------------------------------------------------------------------------------------------

Writer& Track::writer(const ChannelUse& use) { return use.reach == Reach::all ? writer_to_all_ : writers_[use.peer]; }

Reader& Track::reader(const ChannelUse& use) {
    return use.reach == Reach::all ? readers_of_all_[use.peer] : readers_[use.peer];
}

std::byte* Track::acquire(Writer& writer, std::uint64_t bytes, std::uint32_t step, const std::byte* source) {
    if (!writer.has_room())
        wait(EventKind::awaits_room, [&] { return writer.has_room(); }, {writer.slowest(), step, deadline_, true});
    if (bytes <= MessageHeader::inline_bytes) return writer.inline_payload();
    // The payload is aligned to a cache line as its source is, so that whole lines are copied to whole lines.
    const std::uint64_t behind =
        staging_.is_roomy_for(bytes) ? reinterpret_cast<std::uintptr_t>(source) % cache_line_bytes : 0;
    const std::uint64_t room = behind + bytes;
    while (!staging_.has_room(room)) {
        // Several ranks may have to read before there is room, and a rank that has read its messages may leave. So this
        // waits for one rank at a time, and never for a rank that is no longer needed.
        const std::uint32_t peer = staging_.slowest();
        wait(EventKind::awaits_room, [&] { return staging_.has_room(room) || staging_.slowest() != peer; },
             {peer, step, deadline_, true});
    }
    payload_offset_ = staging_.take(room) + behind;
    return endpoint_.at(payload_offset_);
}

void Track::publish(Writer& writer, std::uint64_t bytes) {
    endpoint_.note_sent(bytes * writer.readers.size());
    writer.publish(bytes, payload_offset_, fingerprint_);
    if (bytes > MessageHeader::inline_bytes) staging_.belongs_to(writer);
    for (const std::uint32_t reader : writer.readers) endpoint_.wake_if_asleep(reader);
}

const std::byte* Track::await_message(Reader& reader, std::uint64_t bytes, std::uint32_t step) {
    wait(EventKind::awaits_message, [&] { return reader.has_message(); }, {reader.writer, step, deadline_, true});
    const Message message = reader.message();
    if (message.fingerprint != fingerprint_) endpoint_.report_mismatch(reader.writer);
    if (message.bytes != bytes) endpoint_.report_length(reader.writer, message.bytes, bytes, step);
    return endpoint_.data_of(message);
}

void Track::release(Reader& reader) {
    reader.release();
    endpoint_.wake_if_asleep(reader.writer);
}

}  // namespace unisono
