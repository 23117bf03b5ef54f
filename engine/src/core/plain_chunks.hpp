// Messages that carry chunks as they are.
#pragma once

#include <algorithm>

#include "unisono/copy.hpp"
#include "unisono/track.hpp"

namespace unisono {

struct Track::PlainChunks {
    Track& track;
    const Plan& plan;

    std::uint64_t encoded(std::uint64_t bytes) const { return bytes; }

    // Returns the first byte of a message, so that its payload can be aligned like it. Not needed for short messages,
    // which may have no chunk at all.
    const std::byte* source_of(const Instruction& op, std::uint64_t pass, std::uint64_t bytes) const {
        if (bytes <= MessageHeader::inline_bytes) return nullptr;
        return track.slice(plan, plan.program->operands[op.operands].left, pass).data;
    }

    // Writes a chunk to the payload and, unless `out` is null, to `out`.
    void send(std::byte* payload, std::byte* out, Slice from, bool streams) {
        if (out == nullptr || out == from.data)
            track.copy_strategy_.put(payload, from.data, from.bytes);
        else
            put_and_keep(payload, out, from, streams);
    }

    void receive(std::byte* out, const std::byte* data, std::uint64_t bytes, bool streams) {
        if (streams)
            copy_streaming(out, data, bytes);
        else
            copy_bytes(out, data, bytes);
    }

    // Combines a chunk with the messages; the result goes to `out` and to the payload, either of which may be null.
    void reduce(std::byte* payload, std::byte* out, Slice left, const void* const* messages, std::size_t sources) {
        std::byte* const first = out != nullptr ? out : payload;
        CopyStrategy& strategy = track.copy_strategy_;
        const bool later = strategy.past_caches() && left.bytes >= CopyStrategy::worth_it;
        std::byte* const second = out != nullptr && !later ? payload : nullptr;
        if (first != nullptr)
            plan.combine(first, second, left.data, messages, sources, left.bytes / plan.element_bytes);
        if (out != nullptr && payload != nullptr && later) strategy.put(payload, out, left.bytes);
    }

    void finish_pass(std::uint64_t) {}

  private:
    // Reads once what is written twice: each piece stays in the cache of the core.
    void put_and_keep(std::byte* payload, std::byte* out, Slice from, bool streams) {
        constexpr std::uint64_t piece = 32768;
        for (std::uint64_t done = 0; done < from.bytes; done += piece) {
            const std::uint64_t here = std::min(piece, from.bytes - done);
            track.copy_strategy_.put(payload + done, from.data + done, here);
            receive(out + done, from.data + done, here, streams);
        }
    }
};

}  // namespace unisono
