// The loop that executes compiled programs on the channels of one endpoint.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "unisono/channel.hpp"
#include "unisono/endpoint.hpp"
#include "unisono/copy_strategy.hpp"
#include "unisono/program.hpp"
#include "unisono/reduce.hpp"
#include "unisono/staging.hpp"
#include "unisono/event_log.hpp"
#include "unisono/wire.hpp"

namespace unisono {

// A program with everything that a call fixes: lengths, type, reduction.
struct Plan {
    struct Extent {
        std::uint64_t offset, length;  // of a part in its buffer, in bytes; work parts are a segment long
    };
    std::shared_ptr<const Program> program;
    std::vector<Extent> extents;  // of each part
    std::uint64_t segment_bytes = 0;  // of one chunk in one pass, at most
    std::uint64_t passes = 1;
    std::uint64_t work_bytes = 0;
    std::size_t element_bytes = 1;
    CombineMany combine = nullptr;
    Divide divide = nullptr;   // avg: the result is divided by the number of ranks
    bool skips_empty = false;  // messages without bytes are left out; both ends know the length of every message
    bool streams = false;      // results are too large for the caches: they are written past them
    // Where numbers are smaller on the wire (float32 only). Segments are then a whole number of blocks.
    Wire wire = Wire::none;
    Reduction reduction = Reduction::sum;
    bool stochastic = false;
    std::uint64_t seed = 0;
    std::uint64_t fingerprint = 0;
    std::uint64_t number = 0;  // of the plan
    std::string text;          // the call in words, for error messages
    bool prepared = false;     // its channels are open
};

class Executor {
  public:
    explicit Executor(Endpoint& endpoint);
    Endpoint& endpoint() { return endpoint_; }

    // Takes the plan through all of its passes. Every rank makes the same calls in the same order.
    void run(Plan& plan, const void* input, void* output, Clock::time_point deadline);

  private:
    void prepare(Plan& plan);
    void perform(const Plan& plan);
    void run_pass(const Plan& plan, std::uint64_t pass);
    void send(const Plan& plan, const Instruction& op, std::uint64_t pass);
    void receive(const Plan& plan, const Instruction& op, std::uint64_t pass);
    void reduce(const Plan& plan, const Instruction& op, std::uint64_t pass);
    void move_inside(const Plan& plan, const Instruction& op, std::uint64_t pass);
    void divide_results(const Plan& plan, std::uint64_t pass);
    void await_entry(const Plan& plan);

    // The same with a codec (executor_codec.cpp).
    void run_encoded_pass(const Plan& plan, std::uint64_t pass);
    void send_encoded(const Plan& plan, const Instruction& op, std::uint64_t pass);
    void receive_encoded(const Plan& plan, const Instruction& op, std::uint64_t pass);
    void reduce_encoded(const Plan& plan, const Instruction& op, std::uint64_t pass);
    void round_results(const Plan& plan, std::uint64_t pass);
    std::uint64_t encoded_message_bytes(const Plan& plan, const Instruction& op, std::uint64_t pass) const;
    Rounding dice(const Plan& plan, std::size_t count);

    struct Slice {
        std::byte* data;
        std::uint64_t bytes;
    };
    Slice slice(const Plan& plan, std::uint32_t part, std::uint64_t pass) const;
    // Where the first byte of a message of so many bytes lies.
    const std::byte* begin_of(const Plan& plan, const Instruction& op, std::uint64_t pass, std::uint64_t bytes) const;
    std::uint64_t message_bytes(const Plan& plan, const Instruction& op, std::uint64_t pass) const;

    void put_and_keep(std::byte* payload, std::byte* out, const std::byte* from, std::uint64_t bytes, bool streams);

    // Waits, and writes down that it did, if the call is recorded.
    template <typename Ready>
    void wait(EventKind why, Ready&& ready, const Wait& what) {
        if (!events_.on()) [[likely]] return endpoint_.wait(ready, what);
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
    [[noreturn]] void report_length(std::uint32_t peer, std::uint64_t sent, std::uint64_t expected, std::uint32_t step);

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
    std::uint64_t elements_rounded_ = 0;  // at random, so far
    CallEventWriter events_;

    // Of the call that is running.
    std::byte* buffers_[3] = {};
    std::uint64_t fingerprint_ = 0;
    std::uint64_t payload_offset_ = 0;  // of the message that is being written
    Clock::time_point deadline_{};
};

}  // namespace unisono
