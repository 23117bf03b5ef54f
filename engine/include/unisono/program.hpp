// A compiled program: the instructions of one rank, as the compiler (unisono/compiler) passes them to the engine.
//
// *Part*: a part of a buffer that holds a chunk. *Pass*: one execution of the program on one segment of each chunk. The
// program runs once for the first segment of every chunk, then for the second, and so on, so that neighbours work on
// different passes at the same time and data stays in the caches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace unisono {

// `left` is always a part as long as the chunk, even if nothing is read from it.
enum class Kind : std::uint8_t {
    send,     // channel, and out if there is one, <- left
    receive,  // out, and a channel if there is one, <- message
    reduce,   // out, and a channel if there is one, <- left (op) message (op) message ...
    copy,     // out <- left
    combine,  // out <- left (op) right
};

inline constexpr std::uint16_t no_channel = 0xffff;
inline constexpr std::uint32_t no_part = 0xffffffff;
inline constexpr std::size_t most_sources = 63;  // of one reduce

// `from` and `operands` are the indices of the first entry in Program::channels and Program::operands.
struct Instruction {
    Kind kind;
    std::uint8_t sources;  // messages received
    std::uint16_t chunks;  // number of operands: a message may carry several chunks
    std::uint32_t operands;
    std::uint16_t from;
    std::uint16_t to;    // the channel that is written, or no_channel
    std::uint32_t step;  // of the program as its author wrote it, counted from 0; for error messages
};
static_assert(sizeof(Instruction) == 16);

struct Operand {
    std::uint32_t left, right, out;  // parts, or no_part
    std::uint32_t final;             // 1: this rank does not read `out` again in the same pass
};

enum class Buffer : std::uint32_t { input, output, work };

enum class Reach : std::uint32_t { one, all };

struct ChannelUse {
    std::uint32_t peer;  // the other end; for a channel to all, its writer
    Reach reach;
};

struct Program {
    std::vector<Instruction> instructions;
    std::vector<Operand> operands;
    std::vector<Buffer> parts;  // the buffer of each part
    std::vector<ChannelUse> channels;
    std::vector<std::uint32_t> results;       // the parts that hold the result
    std::vector<std::uint32_t> rounded_last;  // the results that a codec rounds at the end of a pass
    // Ranks that receive from this one and send nothing back: see Executor::await_entry.
    std::vector<std::uint32_t> silent_receivers;
    std::uint32_t largest_message;  // chunks

    // Throws std::invalid_argument if an index is out of range.
    void check(std::uint32_t rank, std::uint32_t size) const;
};

}  // namespace unisono
