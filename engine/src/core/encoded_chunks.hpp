// Messages whose chunks are encoded by a codec (wire.hpp).
//
// What is sent is also rounded in the sender's memory if the sender reads it again: then both ends of a message
// continue with the same numbers. Rounding twice changes nothing, so a received message may be forwarded as it is or
// encoded once more (docs/adr/0014).
//
// The segment of a chunk is encoded in *pieces*, short enough to stay in the core's first-level cache while a piece is
// decoded, combined and encoded again.
#pragma once

#include <algorithm>

#include "unisono/copy.hpp"
#include "unisono/track.hpp"

namespace unisono {

struct Track::EncodedChunks {
    Track& track;
    const Plan& plan;

    std::uint64_t encoded(std::uint64_t bytes) const { return encoded_bytes(plan.wire, elements(bytes)); }

    // The payload is not a copy, so its alignment does not depend on the chunk.
    const std::byte* source_of(const Instruction&, std::uint64_t, std::uint64_t) const { return nullptr; }

    // Encodes a chunk into the payload; unless `out` is null, it becomes what the receiver decodes.
    void send(std::byte* payload, std::byte* out, Slice from, bool) {
        const float* const left = floats(from.data);
        for_each_piece(from.bytes, [&](std::size_t first, std::size_t count, std::uint64_t at) {
            if (out == nullptr) return encode(plan.wire, left + first, payload + at, count, next_rounding(count));
            float* const kept = floats(out) + first;
            if (kept != left + first) copy_bytes(kept, left + first, count * sizeof(float));
            encode_rounding_source(plan.wire, kept, payload + at, count, next_rounding(count));
        });
    }

    void receive(std::byte* out, const std::byte* data, std::uint64_t bytes, bool) {
        for_each_piece(bytes, [&](std::size_t first, std::size_t count, std::uint64_t at) {
            decode(plan.wire, data + at, floats(out) + first, count);
        });
    }

    void reduce(std::byte* payload, std::byte* out, Slice from, const void* const* messages, std::size_t sources) {
        const float* const left = floats(from.data);
        for_each_piece(from.bytes, [&](std::size_t first, std::size_t count, std::uint64_t at) {
            alignas(cache_line_bytes) float side[piece];
            float* const sum = out != nullptr ? floats(out) + first : side;
            const auto message = [&](std::size_t source) {
                return static_cast<const std::byte*>(messages[source]) + at;
            };
            decode_combine(plan.wire, plan.reduction, message(0), left + first, sum, count);
            for (std::size_t source = 1; source < sources; ++source)
                decode_combine(plan.wire, plan.reduction, message(source), sum, sum, count);
            if (payload == nullptr) return;
            if (out != nullptr)
                encode_rounding_source(plan.wire, sum, payload + at, count, next_rounding(count));
            else
                encode(plan.wire, sum, payload + at, count, next_rounding(count));
        });
    }

    // Rounds the results that some ranks have sent, and so rounded, and others have not.
    void finish_pass(std::uint64_t pass) {
        for (const std::uint32_t part : plan.program->rounded_last) {
            const Slice result = track.slice(plan, part, pass);
            for_each_piece(result.bytes, [&](std::size_t first, std::size_t count, std::uint64_t) {
                std::byte unsent[sizeof(float) * piece];
                encode_rounding_source(plan.wire, floats(result.data) + first, unsent, count, {});
            });
        }
        if (track.events_.on() && !plan.program->rounded_last.empty()) [[unlikely]]
            track.events_.end_results();
    }

  private:
    static constexpr std::size_t piece = 2048;  // elements
    static_assert(piece % codec_block_elements == 0);

    static std::size_t elements(std::uint64_t bytes) { return bytes / sizeof(float); }
    static float* floats(std::byte* data) { return reinterpret_cast<float*>(data); }

    // Calls `action(first, count, at)` for every piece of a segment; `at` is the offset of the encoded piece.
    template <typename Action>
    void for_each_piece(std::uint64_t bytes, Action action) {
        std::uint64_t at = 0;
        for (std::size_t first = 0; first < elements(bytes); first += piece) {
            const std::size_t count = std::min(piece, elements(bytes) - first);
            action(first, count, at);
            at += encoded_bytes(plan.wire, count);
        }
    }

    // No two elements that a rank rounds get the same random bits, and no two ranks use the same sequence. (An index
    // counts modulo 2^32; the bits above that go into the seed.)
    Rounding next_rounding(std::size_t count) {
        if (!plan.stochastic) return {};
        const std::uint64_t first = track.elements_rounded_;
        track.elements_rounded_ += count;
        const Settings& settings = track.endpoint_.settings;
        const std::uint64_t stream = (first >> 32) * settings.geometry.size + settings.rank + 1;
        return {true, plan.seed + stream * 0x9e3779b97f4a7c15u, first};
    }
};

}  // namespace unisono
