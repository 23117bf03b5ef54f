#include "unisono/tape.hpp"

#include <algorithm>
#include <bit>

namespace unisono {

// ---- tapes -----------------------------------------------------------------------------------------------------

// Every word is released: who sees a word of this row also sees that all rows before it are written.
void Tape::put(const Event& event) {
    const auto values = std::bit_cast<std::array<std::uint64_t, words>>(event);
    Row& row = rows_[next_];
    for (std::size_t word = 0; word < words; ++word) row[word].store(values[word], std::memory_order_release);
    if (++next_ == rows_.size()) next_ = 0;
    written_.store(written_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
}

Tape::Reading Tape::read(const ClockPair& began) const {
    const std::uint64_t end = written_.load(std::memory_order_acquire), rows = rows_.size();
    const auto oldest_after = [rows](std::uint64_t written) { return written >= rows ? written + 1 - rows : 0; };
    const std::uint64_t first = oldest_after(end);
    Reading reading;
    reading.events.reserve(end - first);
    for (std::uint64_t number = first; number < end; ++number) {
        const Row& row = rows_[number % rows];
        std::array<std::uint64_t, words> values;
        for (std::size_t word = 0; word < words; ++word) values[word] = row[word].load(std::memory_order_acquire);
        reading.events.push_back(std::bit_cast<Event>(values));
    }
    // What was written meanwhile went over the oldest of them.
    const std::uint64_t whole = std::min(end, oldest_after(written_.load(std::memory_order_acquire)));
    reading.events.erase(reading.events.begin(), reading.events.begin() + static_cast<std::ptrdiff_t>(whole - first));
    reading.dropped = whole;
    const ClockPair now = ClockPair::now();
    for (Event& event : reading.events) {
        event.begin = ns_of(event.begin, began, now);
        event.end = ns_of(event.end, began, now);
    }
    return reading;
}

void Recording::put_transfer(const Event& event) {
    const std::lock_guard lock(mutex_);
    if (!transfers_) transfers_ = std::make_unique<Tape>(capacity_);
    transfers_->put(event);
}

Tape::Reading Recording::read_transfers() {
    const std::lock_guard lock(mutex_);
    return transfers_ ? transfers_->read(began_) : Tape::Reading{};
}

// ---- recordings ------------------------------------------------------------------------------------------------

std::shared_ptr<Recording> Recordings::start(std::size_t capacity) {
    auto recording = std::make_shared<Recording>(capacity);
    const std::lock_guard lock(mutex_);
    recordings_.push_back(recording);
    any_.store(true, std::memory_order_relaxed);
    version_.fetch_add(1, std::memory_order_relaxed);
    return recording;
}

void Recordings::stop(const std::shared_ptr<Recording>& recording) {
    const std::lock_guard lock(mutex_);
    std::erase(recordings_, recording);
    any_.store(!recordings_.empty(), std::memory_order_relaxed);
    version_.fetch_add(1, std::memory_order_relaxed);
}

std::vector<std::shared_ptr<Recording>> Recordings::current() {
    const std::lock_guard lock(mutex_);
    return recordings_;
}

void Recordings::put_transfer(const Transfer& transfer, Moment moment, std::uint32_t peer) {
    const Event event{transfer.began, read_ticks(), transfer.number, transfer.bytes, transfer.tag, 0, moment, peer};
    for (const auto& recording : current()) recording->put_transfer(event);
}

// ---- calls -----------------------------------------------------------------------------------------------------

void CallRecorder::look_at(Recordings& recordings) {
    version_ = recordings.version();
    recordings_ = recordings.current();
    on_ = !recordings_.empty();
}

void CallRecorder::begin_anew() { instruction_began_ = last_ = read_ticks(); }

void CallRecorder::enter(std::uint64_t call, std::uint64_t plan) {
    call_ = call;
    plan_ = plan;
}

void CallRecorder::begin_pass(std::uint64_t pass) {
    pass_ = static_cast<std::uint32_t>(pass);
    instruction_ = 0;
}

void CallRecorder::end_instruction() {
    last_ = read_ticks();
    put(Moment::instruction, instruction_began_, last_, instruction_++);
    instruction_began_ = last_;
}

void CallRecorder::end_results() {
    last_ = read_ticks();
    put(Moment::results, instruction_began_, last_, 0);
    instruction_began_ = last_;
}

void CallRecorder::end_wait(Moment why, std::uint32_t peer) {
    const std::uint64_t began = last_;
    last_ = read_ticks();
    put(why, began, last_, instruction_, peer);
}

void CallRecorder::end(bool failed) {
    if (failed) last_ = read_ticks();
    put(Moment::call, began_, last_, (in_background ? call_in_background : 0) | (failed ? call_failed : 0));
}

void CallRecorder::put(Moment moment, std::uint64_t begin, std::uint64_t end, std::uint32_t what, std::uint32_t peer) {
    const Event event{begin, end, call_, plan_, what, pass_, moment, peer};
    for (const auto& recording : recordings_) recording->put_collective(event);
}

}  // namespace unisono
