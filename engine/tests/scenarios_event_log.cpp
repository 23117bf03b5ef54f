#include <atomic>
#include <thread>

#include "check.hpp"
#include "letters.hpp"
#include "members.hpp"
#include "scenarios.hpp"
#include "small_plans.hpp"

namespace unisono::tests {

namespace {

constexpr std::size_t calls = 500;

// Checks that events are in the order of their ends, and that none is torn.
void check_order(const EventBuffer::Reading& reading, std::uint64_t plan) {
    std::uint64_t last_end = 0, last_call = 0;
    for (const Event& event : reading.events) {
        CHECK(event.begin <= event.end && event.end >= last_end);
        CHECK(event.number >= last_call && event.number <= calls + 1);
        CHECK(event.about == plan && event.kind <= EventKind::awaits_entry);
        last_end = event.end;
        last_call = event.number;
    }
}

std::size_t count_of(const EventBuffer::Reading& reading, EventKind kind) {
    std::size_t found = 0;
    for (const Event& event : reading.events) found += event.kind == kind;
    return found;
}

}  // namespace

// One thread reads the buffers repeatedly while another writes and overwrites them.
void event_logs_are_read_while_they_are_written() {
    with_members({2, 8, page_bytes, 4096}, [](Member& member) {
        const std::shared_ptr<Plan> plan = exchange(member.rank(), "one of many");
        const auto go = [&](std::size_t times) {
            for (std::size_t call = 0; call < times; ++call) {
                double value = 1;
                member.collectives.run({plan, &value, &value, long_enough});
                CHECK(value == 2);
            }
        };
        const auto roomy = member.endpoint.event_logs.start(100 * calls), narrow = member.endpoint.event_logs.start(7);
        std::atomic<bool> done = false;
        std::thread reader([&] {
            while (!done) {
                check_order(roomy->read_collectives(), plan->number);
                check_order(narrow->read_collectives(), plan->number);
            }
        });
        go(calls);
        done = true;
        reader.join();
        member.endpoint.event_logs.stop(narrow);
        const EventBuffer::Reading all = roomy->read_collectives(), last = narrow->read_collectives();
        CHECK(count_of(all, EventKind::call) == calls && count_of(all, EventKind::instruction) == 2 * calls);
        CHECK(all.dropped == 0 && last.events.size() == 7 && last.dropped + 7 == all.events.size());
        for (std::size_t at = 0; at < 7; ++at)
            CHECK(last.events[at].number == all.events[all.events.size() - 7 + at].number);
        go(1);  // only one of the two logs is active
        member.endpoint.event_logs.stop(roomy);
        go(1);  // none is active
        CHECK(count_of(roomy->read_collectives(), EventKind::call) == calls + 1);
        CHECK(narrow->read_collectives().dropped == last.dropped);
        member.leave();
    });
}

// Both ends identify a message by the same number, whatever was sent before the log was started.
void both_ends_of_a_transfer_have_its_number() {
    with_members({2, 4, page_bytes, 256}, [](Member& member) {
        const std::uint32_t other = 1 - member.rank();
        const auto swap = [&](std::uint32_t tag, std::size_t length) {
            std::vector<std::uint32_t> out = letter(member.rank(), other, tag, length), in(length);
            const auto sent = member.transfer_queue.start(transfer(true, other, out, tag), long_enough);
            member.transfer_queue.run(transfer(false, tag % 2 == 0 ? other : any_rank, in, tag), long_enough);
            expect_success(*sent);
            CHECK(in == letter(other, member.rank(), tag, length));
        };
        swap(0, 1000);  // several slots
        const auto log = member.endpoint.event_logs.start(100);
        const std::size_t lengths[] = {0, 1, 1000, 3, 500};
        for (std::uint32_t tag = 0; tag < 5; ++tag) swap(tag, lengths[tag]);
        member.leave();
        const EventBuffer::Reading reading = log->read_transfers();
        CHECK(reading.events.size() == 10);
        std::uint64_t numbers[5] = {};
        for (const Event& event : reading.events) {
            CHECK(event.peer == other && event.about == 4 * lengths[event.what] && event.begin <= event.end);
            std::uint64_t& number = numbers[event.what];
            CHECK(number == 0 || number == event.number);  // both ranks send and receive the same lengths
            number = event.number;
        }
        const std::uint64_t slots[] = {16, 17, 18, 34, 35};
        for (std::size_t tag = 0; tag < 5; ++tag) CHECK(numbers[tag] == slots[tag]);
    });
}

}  // namespace unisono::tests
