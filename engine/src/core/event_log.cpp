#include "unisono/event_log.hpp"

#include <algorithm>
#include <bit>

namespace unisono {

// ---- buffers -----------------------------------------------------------------------------------------------------

// Every word is stored with release: a reader that sees a word of this row also sees all rows before it.
void EventBuffer::put(const Event& event) {
    const auto values = std::bit_cast<std::array<std::uint64_t, words>>(event);
    Row& row = rows_[next_];
    for (std::size_t word = 0; word < words; ++word) row[word].store(values[word], std::memory_order_release);
    if (++next_ == rows_.size()) next_ = 0;
    written_.store(written_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
}

EventBuffer::Reading EventBuffer::read(const ClockPair& began) const {
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
    // Events written meanwhile have overwritten the oldest ones.
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

void EventLog::put_transfer(const Event& event) {
    const std::lock_guard lock(mutex_);
    if (!transfers_) transfers_ = std::make_unique<EventBuffer>(capacity_);
    transfers_->put(event);
}

EventBuffer::Reading EventLog::read_transfers() {
    const std::lock_guard lock(mutex_);
    return transfers_ ? transfers_->read(began_) : EventBuffer::Reading{};
}

// ---- event logs ------------------------------------------------------------------------------------------------

std::shared_ptr<EventLog> EventLogs::start(std::size_t capacity) {
    auto log = std::make_shared<EventLog>(capacity);
    const std::lock_guard lock(mutex_);
    logs_.push_back(log);
    any_.store(true, std::memory_order_relaxed);
    version_.fetch_add(1, std::memory_order_relaxed);
    return log;
}

void EventLogs::stop(const std::shared_ptr<EventLog>& log) {
    const std::lock_guard lock(mutex_);
    std::erase(logs_, log);
    any_.store(!logs_.empty(), std::memory_order_relaxed);
    version_.fetch_add(1, std::memory_order_relaxed);
}

std::vector<std::shared_ptr<EventLog>> EventLogs::current() {
    const std::lock_guard lock(mutex_);
    return logs_;
}

void EventLogs::put_transfer(const Transfer& transfer, EventKind kind, std::uint32_t peer) {
    const Event event{transfer.began, read_ticks(), transfer.number, transfer.bytes, transfer.tag, 0, kind, peer};
    for (const auto& log : current()) log->put_transfer(event);
}

// ---- calls -----------------------------------------------------------------------------------------------------

void CallEventWriter::look_at(EventLogs& event_logs) {
    version_ = event_logs.version();
    logs_ = event_logs.current();
    on_ = !logs_.empty();
}

void CallEventWriter::begin_anew() { instruction_began_ = last_ = read_ticks(); }

void CallEventWriter::enter(std::uint64_t call, std::uint64_t plan) {
    call_ = call;
    plan_ = plan;
}

void CallEventWriter::begin_pass(std::uint64_t pass) {
    pass_ = static_cast<std::uint32_t>(pass);
    instruction_ = 0;
}

void CallEventWriter::switch_to(std::uint64_t pass, std::uint32_t instruction) {
    pass_ = static_cast<std::uint32_t>(pass);
    instruction_ = instruction;
    instruction_began_ = last_;
}

void CallEventWriter::end_instruction() {
    last_ = read_ticks();
    put(EventKind::instruction, instruction_began_, last_, instruction_++);
    instruction_began_ = last_;
}

void CallEventWriter::end_results() {
    last_ = read_ticks();
    put(EventKind::results, instruction_began_, last_, 0);
    instruction_began_ = last_;
}

void CallEventWriter::end_wait(EventKind why, std::uint32_t peer) {
    const std::uint64_t began = last_;
    last_ = read_ticks();
    put(why, began, last_, instruction_, peer);
}

void CallEventWriter::end(bool failed) {
    if (failed) last_ = read_ticks();
    put(EventKind::call, began_, last_, (in_background ? call_in_background : 0) | (failed ? call_failed : 0));
}

void CallEventWriter::put(EventKind kind, std::uint64_t begin, std::uint64_t end, std::uint32_t what,
                          std::uint32_t peer) {
    const Event event{begin, end, call_, plan_, what, pass_, kind, peer};
    for (const auto& log : logs_) log->put_collective(event);
}

}  // namespace unisono
