// The description of a fault as data: an id and named parameters.
//
// The engine writes no sentences. Python turns a description into English or Chinese with the template of the same id
// (src/unisono/comm/engine_messages.py). A description is kept as text, because it must fit into the shared memory:
//
//     timed_out_in_call|rank=@0|peer=@2|seconds=5.0|step=3|call=all_reduce(8 float32)
//     waits|rank=@2|peer=@1|step=3
//
// The first line is the fault. Each further line is a detail of it: what the rank waited for was waiting for, and so
// on. A value that begins with @ has a special meaning: a rank (rank_names.hpp), or one of the constants below. In
// other values, characters that have a meaning here are written as % and two hexadecimal digits.
#pragma once

#include <cstdint>
#include <string>

namespace unisono {

inline constexpr const char* any_rank_value = "@any";
inline constexpr const char* unknown_call_value = "@unknown";

class FaultMessage {
  public:
    explicit FaultMessage(const char* id) : text_(id) {}

    FaultMessage& with(const char* name, const std::string& text);
    FaultMessage& with(const char* name, std::uint64_t number);
    // Adds a value that is already in the form above: a rank, or one of the constants.
    FaultMessage& with_value(const char* name, const std::string& value);
    FaultMessage& with_detail(const FaultMessage& detail);

    const std::string& text() const { return text_; }
    // Returns a text as a value.
    static std::string escaped(const std::string& text);

  private:
    std::string text_;
};

// Thrown where the operating system refuses shared memory or address space.
struct MemoryRefused {
    const char* id;  // no_shared_memory or no_address_space
    std::uint64_t bytes;
    int error;  // errno

    // Describes the fault; `rank` is the value of the rank that needs the memory.
    FaultMessage message(const std::string& rank) const;
};

}  // namespace unisono
