// The instructions where numbers are smaller on the wire than in memory (wire.hpp).
//
// What is sent is rounded in the sender's own memory too, wherever it is looked at again: the two ends of a message then
// go on with the same numbers. Rounding what has been rounded changes nothing, so it does not matter whether what was
// received is passed on as it came, or encoded once more. (docs/adr/0014)
//
// A chunk's segment goes in *pieces*, each encoded by itself: short enough for a piece to stay in the core's first cache
// while everything happens to it.
#include <algorithm>

#include "unisono/copy.hpp"
#include "unisono/executor.hpp"

namespace unisono {

namespace {

constexpr std::size_t piece = 2048;  // elements
static_assert(piece % codec_block_elements == 0);

std::size_t elements(std::uint64_t bytes) { return bytes / sizeof(float); }

float* floats(std::byte* data) { return reinterpret_cast<float*>(data); }

// Calls `action(first, count, offset)` for every piece of a segment of so many elements: `offset` is where its encoding lies
// in the message, counted on from what is passed.
template <typename Action>
void for_each_piece(Wire wire, std::size_t elements, std::uint64_t& offset, Action action) {
    for (std::size_t first = 0; first < elements; first += piece) {
        const std::size_t count = std::min(piece, elements - first);
        action(first, count, offset);
        offset += encoded_bytes(wire, count);
    }
}

}  // namespace

void Executor::run_encoded_pass(const Plan& plan, std::uint64_t pass) {
    for (const Instruction& op : plan.program->instructions) {
        switch (op.kind) {
            case Kind::send: send_encoded(plan, op, pass); break;
            case Kind::receive: receive_encoded(plan, op, pass); break;
            case Kind::reduce: reduce_encoded(plan, op, pass); break;
            case Kind::copy:
            case Kind::combine: move_inside(plan, op, pass); break;
        }
        if (events_.on()) [[unlikely]] events_.end_instruction();
    }
    round_results(plan, pass);
    if (plan.divide != nullptr) divide_results(plan, pass);
}

std::uint64_t Executor::encoded_message_bytes(const Plan& plan, const Instruction& op, std::uint64_t pass) const {
    std::uint64_t bytes = 0;
    const Operand* operands = plan.program->operands.data() + op.operands;
    for (std::size_t chunk = 0; chunk < op.chunks; ++chunk)
        bytes += encoded_bytes(plan.wire, elements(slice(plan, operands[chunk].left, pass).bytes));
    return bytes;
}

// No two elements that a rank rounds are given the same dice, and no two ranks have the same. (An index counts modulo 2^32:
// what is beyond goes into the seed.)
Rounding Executor::dice(const Plan& plan, std::size_t count) {
    if (!plan.stochastic) return {};
    const std::uint64_t first = elements_rounded_;
    elements_rounded_ += count;
    const std::uint64_t stream = (first >> 32) * endpoint_.settings.geometry.size + endpoint_.settings.rank + 1;
    return {true, plan.seed + stream * 0x9e3779b97f4a7c15u, first};
}

void Executor::send_encoded(const Plan& plan, const Instruction& op, std::uint64_t pass) {
    const std::uint64_t bytes = encoded_message_bytes(plan, op, pass);
    if (bytes == 0 && plan.skips_empty) return;
    Writer& to = writer(plan.program->channels[op.to]);
    const Operand* operands = plan.program->operands.data() + op.operands;
    std::byte* const payload = acquire(to, bytes, op.step, nullptr);
    std::uint64_t offset = 0;
    for (std::size_t chunk = 0; chunk < op.chunks; ++chunk) {
        const Slice from = slice(plan, operands[chunk].left, pass);
        const bool keeps = operands[chunk].out != no_part;
        float* const out = keeps ? floats(slice(plan, operands[chunk].out, pass).data) : nullptr;
        const float* const left = floats(from.data);
        const auto put = [&](std::size_t first, std::size_t count, std::uint64_t at) {
            if (!keeps) return encode(plan.wire, left + first, payload + at, count, dice(plan, count));
            if (out != left) copy_bytes(out + first, left + first, count * sizeof(float));
            encode_rounding_source(plan.wire, out + first, payload + at, count, dice(plan, count));
        };
        for_each_piece(plan.wire, elements(from.bytes), offset, put);
    }
    publish(to, bytes);
}

void Executor::receive_encoded(const Plan& plan, const Instruction& op, std::uint64_t pass) {
    const std::uint64_t bytes = encoded_message_bytes(plan, op, pass);
    if (bytes == 0 && plan.skips_empty) return;
    Reader& from = reader(plan.program->channels[op.from]);
    const std::byte* const data = await_message(from, bytes, op.step);
    if (op.to != no_channel) {  // as it came
        Writer& to = writer(plan.program->channels[op.to]);
        copy_strategy_.put(acquire(to, bytes, op.step, data), data, bytes);
        publish(to, bytes);
    }
    const Operand* operands = plan.program->operands.data() + op.operands;
    std::uint64_t offset = 0;
    for (std::size_t chunk = 0; chunk < op.chunks; ++chunk) {
        const std::size_t length = elements(slice(plan, operands[chunk].left, pass).bytes);
        if (operands[chunk].out == no_part) {
            offset += encoded_bytes(plan.wire, length);
            continue;
        }
        float* const out = floats(slice(plan, operands[chunk].out, pass).data);
        const auto keep = [&](std::size_t first, std::size_t count, std::uint64_t at) {
            decode(plan.wire, data + at, out + first, count);
        };
        for_each_piece(plan.wire, length, offset, keep);
    }
    release(from);
}

void Executor::reduce_encoded(const Plan& plan, const Instruction& op, std::uint64_t pass) {
    const std::uint64_t bytes = encoded_message_bytes(plan, op, pass);
    if (bytes == 0 && plan.skips_empty) return;
    const ChannelUse* sources = plan.program->channels.data() + op.from;
    const std::byte* messages[most_sources];
    for (int source = 0; source < op.sources; ++source)
        messages[source] = await_message(reader(sources[source]), bytes, op.step);
    Writer* to = op.to != no_channel ? &writer(plan.program->channels[op.to]) : nullptr;
    std::byte* const payload = to != nullptr ? acquire(*to, bytes, op.step, nullptr) : nullptr;
    const Operand* operands = plan.program->operands.data() + op.operands;
    std::uint64_t offset = 0;
    for (std::size_t chunk = 0; chunk < op.chunks; ++chunk) {
        const Slice from = slice(plan, operands[chunk].left, pass);
        const bool keeps = operands[chunk].out != no_part;
        float* const out = keeps ? floats(slice(plan, operands[chunk].out, pass).data) : nullptr;
        const float* const left = floats(from.data);
        const auto add = [&](std::size_t first, std::size_t count, std::uint64_t at) {
            alignas(cache_line_bytes) float side[piece];
            float* const sum = keeps ? out + first : side;
            decode_combine(plan.wire, plan.reduction, messages[0] + at, left + first, sum, count);
            for (int source = 1; source < op.sources; ++source)
                decode_combine(plan.wire, plan.reduction, messages[source] + at, sum, sum, count);
            if (payload == nullptr) return;
            if (keeps)
                encode_rounding_source(plan.wire, sum, payload + at, count, dice(plan, count));
            else
                encode(plan.wire, sum, payload + at, count, dice(plan, count));
        };
        for_each_piece(plan.wire, elements(from.bytes), offset, add);
    }
    if (to != nullptr) publish(*to, bytes);
    for (int source = 0; source < op.sources; ++source) release(reader(sources[source]));
}

// Where some ranks have sent their result, and so rounded it, and others have not.
void Executor::round_results(const Plan& plan, std::uint64_t pass) {
    for (const std::uint32_t part : plan.program->rounded_last) {
        const Slice result = slice(plan, part, pass);
        const std::size_t count = elements(result.bytes);
        for (std::size_t first = 0; first < count; first += piece) {
            std::byte unsent[sizeof(float) * piece];
            encode_rounding_source(plan.wire, floats(result.data) + first, unsent, std::min(piece, count - first), {});
        }
    }
    if (events_.on() && !plan.program->rounded_last.empty()) [[unlikely]] events_.end_results();
}

}  // namespace unisono
