// Runs the passes of a plan on one set of channels.
//
// *Track*: the channels between all ranks, and the staging and work memory of this rank, that serve one pass at a time.
// Inside a host there is one track. Between hosts there are several: pass p of a call runs on track p modulo their
// number, on every rank, so that some passes move through the network while others are added up. Tracks share nothing
// but the buffers of the call, of which every pass has its own segments; so the proof of the program holds for each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "unisono/channel.hpp"
#include "unisono/copy_strategy.hpp"
#include "unisono/endpoint.hpp"
#include "unisono/event_log.hpp"
#include "unisono/plan.hpp"
#include "unisono/staging.hpp"

namespace unisono {

// The properties of one call.
struct Call {
    std::byte* input;
    std::byte* output;
    std::uint64_t fingerprint;
    Deadline deadline;
};

class Track {
  public:
    Track(Endpoint& endpoint, std::uint32_t number, CopyStrategy& copy_strategy, CallEventWriter& events);

    // Allocates the memory of the channels and the buffers that a plan uses.
    void open(const Plan& plan);
    void begin(const Call& call);
    // Runs all passes, one after another.
    void run_passes(const Plan& plan);

    // For several passes at a time: `start` begins a pass, and `advance` runs its instructions up to the first that has
    // to wait. It returns whether it ran any.
    void start(std::uint64_t pass);
    bool advance(const Plan& plan);
    bool has_pass() const { return has_pass_; }
    std::uint64_t pass() const { return pass_; }
    std::uint32_t next_instruction() const { return next_; }
    // What the next instruction has to wait for; nothing if it can run now.
    struct Need {
        EventKind kind;  // awaits_message or awaits_room
        std::uint32_t peer, step;
    };
    std::optional<Need> need(const Plan& plan);

  private:
    // The contents of messages: chunks as they are, or encoded by a codec. One loop serves both; the compiler
    // instantiates it twice (src/core/plain_chunks.hpp, src/core/encoded_chunks.hpp).
    struct PlainChunks;
    struct EncodedChunks;

    // A part of a buffer in one pass.
    struct Slice {
        std::byte* data;
        std::uint64_t bytes;
    };

    template <typename Chunks>
    void run_all(const Plan& plan);
    template <typename Chunks>
    bool advance_with(const Plan& plan);
    template <typename Chunks>
    std::optional<Need> need_of(Chunks& chunks, const Instruction& op);
    template <typename Chunks>
    void execute(Chunks& chunks, const Instruction& op, std::uint64_t pass);
    template <typename Chunks>
    void finish(Chunks& chunks, std::uint64_t pass);
    template <typename Chunks>
    void send(Chunks& chunks, const Instruction& op, std::uint64_t pass);
    template <typename Chunks>
    void receive(Chunks& chunks, const Instruction& op, std::uint64_t pass);
    template <typename Chunks>
    void reduce(Chunks& chunks, const Instruction& op, std::uint64_t pass);
    void move_inside(const Plan& plan, const Instruction& op, std::uint64_t pass);
    void divide_results(const Plan& plan, std::uint64_t pass);

    Slice slice(const Plan& plan, std::uint32_t part, std::uint64_t pass) const;
    template <typename Chunks>
    std::uint64_t message_bytes(const Chunks& chunks, const Instruction& op, std::uint64_t pass) const;

    // Waits, and records the wait if the call is traced.
    template <typename Ready>
    void wait(EventKind why, Ready&& ready, const Wait& what) {
        if (!events_.on()) [[likely]]
            return endpoint_.wait(ready, what);
        if (!ready()) events_.during_wait(why, what.peer, [&] { endpoint_.wait(ready, what); });
    }

    Writer& writer(const ChannelUse& use);
    Reader& reader(const ChannelUse& use);
    std::byte* acquire(Writer& writer, std::uint64_t bytes, std::uint32_t step, const std::byte* source);
    void publish(Writer& writer, std::uint64_t bytes);
    const std::byte* await_message(Reader& reader, std::uint64_t bytes, std::uint32_t step);
    void release(Reader& reader);

    Endpoint& endpoint_;
    CopyStrategy& copy_strategy_;
    CallEventWriter& events_;
    const std::uint32_t number_;
    std::vector<Writer> writers_;  // by reader
    std::vector<Reader> readers_;  // by writer
    Writer writer_to_all_;
    std::vector<Reader> readers_of_all_;  // by writer
    Staging staging_;
    std::unique_ptr<std::byte[]> work_memory_;
    std::byte* work_ = nullptr;  // aligned
    std::uint64_t work_bytes_ = 0;
    std::uint64_t elements_rounded_ = 0;  // stochastically, so far

    // State of the running call.
    std::byte* buffers_[3] = {};
    std::uint64_t fingerprint_ = 0;
    std::uint64_t payload_offset_ = 0;  // of the message that is being written
    Deadline deadline_;
    // State of the running pass, if several run at a time.
    bool has_pass_ = false;
    std::uint64_t pass_ = 0;
    std::uint32_t next_ = 0;  // instruction
};

}  // namespace unisono
