// What the compiler (unisono/compiler) hands to the engine: the program of one rank, in instructions.
//
// *Place*: a part of a buffer that holds a chunk. *Pass*: chunks are cut into segments, and the whole program runs once
// for the first segment of every chunk, then for the second, and so on; so neighbours work on different passes at the
// same time, and what moves stays in the cache.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace unisono {

// `left` is always a part as long as the chunk, also where nothing is read from it.
enum class Kind : std::uint8_t {
    send,     // channel, and out where there is one, <- left
    receive,  // out, and a channel where there is one, <- message
    reduce,   // out, and a channel where there is one, <- left (op) message (op) message ...
    copy,     // out <- left
    combine,  // out <- left (op) right
};

inline constexpr std::uint16_t no_channel = 0xffff;
inline constexpr std::uint32_t no_part = 0xffffffff;
inline constexpr std::size_t most_sources = 63;  // of one reduce

// 16 bytes. `from` and `operands` say where the lists begin in Program::channels and Program::operands.
struct Instruction {
    Kind kind;
    std::uint8_t sources;   // messages that are received
    std::uint16_t chunks;   // operands: a message may carry several chunks
    std::uint32_t operands;
    std::uint16_t from;
    std::uint16_t to;  // the channel that is written; no_channel: none
    std::uint32_t step;  // of the program as its author wrote it; for messages to people
};
static_assert(sizeof(Instruction) == 16);

struct Operand {
    std::uint32_t left, right, out;  // parts; no_part: none
    std::uint32_t final;             // 1: this rank does not read `out` again in the same pass
};

enum class Buffer : std::uint32_t { input, output, work };

enum class Reach : std::uint32_t { one, all };

struct ChannelUse {
    std::uint32_t peer;  // the other end; of a channel to all, its writer
    Reach reach;
};

struct Program {
    std::vector<Instruction> instructions;
    std::vector<Operand> operands;
    std::vector<Buffer> parts;  // the buffer that each part lies in
    std::vector<ChannelUse> channels;
    std::vector<std::uint32_t> results;  // the parts that hold the result
    std::vector<std::uint32_t> rounded_last;  // those of them that a codec rounds once more in the end
    std::vector<std::uint32_t> silent_receivers;  // ranks that are sent to and never heard of: see Executor::await_entry
    std::uint32_t largest_message;       // chunks

    // Throws std::invalid_argument where an index points nowhere.
    void check(std::uint32_t rank, std::uint32_t size) const;
};

}  // namespace unisono
