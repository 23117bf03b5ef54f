// The messages that ranks exchange in the tests.
#pragma once

#include <cstdint>
#include <vector>

#include "check.hpp"
#include "unisono/transfer_queue.hpp"

namespace unisono::tests {

inline constexpr Nanoseconds long_enough = std::chrono::seconds(100);

inline void expect_success(Completion& completion) {
    CHECK(completion.wait_until(Clock::now() + long_enough));
    const FaultReport report = completion.fault_report();
    if (report.fault != Fault::none) give_up(report.text, "a call that was started", 0);
}

// Returns the contents of message number `lap` from one rank to another.
inline std::vector<std::uint32_t> letter(std::uint32_t from, std::uint32_t to, std::uint32_t lap, std::size_t length) {
    std::vector<std::uint32_t> words(length);
    for (std::size_t at = 0; at < length; ++at) words[at] = from * 1'000'003 + to * 10'007 + lap * 101 + at;
    return words;
}

inline Transfer transfer(bool sending, std::uint32_t peer, std::vector<std::uint32_t>& words, std::uint32_t tag = 0) {
    return {sending,
            peer,
            reinterpret_cast<std::byte*>(words.data()),
            words.size() * sizeof words[0],
            transfer_label(DType::uint32, words.size()),
            tag};
}

}  // namespace unisono::tests
