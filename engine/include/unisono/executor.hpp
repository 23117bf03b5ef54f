// The loop that executes compiled programs on the channels of one endpoint.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "unisono/channel.hpp"
#include "unisono/copy_strategy.hpp"
#include "unisono/endpoint.hpp"
#include "unisono/event_log.hpp"
#include "unisono/program.hpp"
#include "unisono/reduce.hpp"
#include "unisono/staging.hpp"
#include "unisono/wire.hpp"

namespace unisono {

// A program bound to the properties of a call: lengths, type and reduction.
struct Plan {
    struct Extent {
        std::uint64_t offset, length;  // of a part in its buffer, in bytes; work parts are one segment long
    };
    std::shared_ptr<const Program> program;
    std::vector<Extent> extents;      // of each part
    std::uint64_t segment_bytes = 0;  // of one chunk in one pass, at most
    std::uint64_t passes = 1;
    std::uint64_t work_bytes = 0;
    std::size_t element_bytes = 1;
    CombineMany combine = nullptr;
    Divide divide = nullptr;   // avg: the result is divided by the number of ranks
    bool skips_empty = false;  // empty messages are left out; both ends know the length of every message
    bool streams = false;      // results are too large for the caches and are written past them
    // The codec (float32 only). Segments are then a whole number of codec blocks.
    Wire wire = Wire::none;
    Reduction reduction = Reduction::sum;
    bool stochastic = false;
    std::uint64_t seed = 0;
    std::uint64_t fingerprint = 0;
    std::uint64_t number = 0;  // of the plan
    std::string text;          // describes the call in error messages
    bool prepared = false;     // its channels are open
};

class Executor {
  public:
    explicit Executor(Endpoint& endpoint);
    Endpoint& endpoint() { return endpoint_; }

    // Runs all passes of the plan. Every rank makes the same calls in the same order.
    void run(Plan& plan, const void* input, void* output, const Deadline& deadline);

  private:
    // The contents of messages: chunks as they are, or encoded by a codec. One loop serves both; the compiler
    // instantiates it twice (src/core/executor_plain.hpp, src/core/executor_codec.hpp).
    struct PlainChunks;
    struct EncodedChunks;

    // A part of a buffer in one pass.
    struct Slice {
        std::byte* data;
        std::uint64_t bytes;
    };

    void prepare(Plan& plan);
    void perform(const Plan& plan);
    template <typename Chunks>
    void run_passes(const Plan& plan);
    template <typename Chunks>
    void run_pass(Chunks& chunks, std::uint64_t pass);
    template <typename Chunks>
    void send(Chunks& chunks, const Instruction& op, std::uint64_t pass);
    template <typename Chunks>
    void receive(Chunks& chunks, const Instruction& op, std::uint64_t pass);
    template <typename Chunks>
    void reduce(Chunks& chunks, const Instruction& op, std::uint64_t pass);
    void move_inside(const Plan& plan, const Instruction& op, std::uint64_t pass);
    void divide_results(const Plan& plan, std::uint64_t pass);
    void await_entry(const Plan& plan);

    Slice slice(const Plan& plan, std::uint32_t part, std::uint64_t pass) const;
    template <typename Chunks>
    std::uint64_t message_bytes(const Chunks& chunks, const Instruction& op, std::uint64_t pass) const;

    // Waits, and records the wait if the call is traced.
    template <typename Ready>
    void wait(EventKind why, Ready&& ready, const Wait& what) {
        if (!events_.on()) [[likely]]
            return endpoint_.wait(ready, what);
        if (ready()) return;
        try {
            endpoint_.wait(ready, what);
        } catch (...) {
            events_.end_wait(why, what.peer);
            throw;
        }
        events_.end_wait(why, what.peer);
    }

    Writer& writer(const ChannelUse& use);
    Reader& reader(const ChannelUse& use);
    std::byte* acquire(Writer& writer, std::uint64_t bytes, std::uint32_t step, const std::byte* source);
    void publish(Writer& writer, std::uint64_t bytes);
    const std::byte* await_message(Reader& reader, std::uint64_t bytes, std::uint32_t step);
    void release(Reader& reader);

    Endpoint& endpoint_;
    std::vector<Writer> writers_;  // by reader
    std::vector<Reader> readers_;  // by writer
    Writer writer_to_all_;
    std::vector<Reader> readers_of_all_;  // by writer
    Staging staging_;
    CopyStrategy copy_strategy_;
    std::unique_ptr<std::byte[]> work_memory_;
    std::byte* work_ = nullptr;  // aligned
    std::uint64_t work_bytes_ = 0;
    std::uint64_t elements_rounded_ = 0;  // stochastically, so far
    CallEventWriter events_;

    // State of the running call.
    std::byte* buffers_[3] = {};
    std::uint64_t fingerprint_ = 0;
    std::uint64_t payload_offset_ = 0;  // of the message that is being written
    Deadline deadline_;
};

}  // namespace unisono
