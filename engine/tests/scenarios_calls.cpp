#include <algorithm>
#include <thread>

#include "check.hpp"
#include "letters.hpp"
#include "members.hpp"
#include "scenarios.hpp"
#include "small_plans.hpp"
#include "unisono/copy_strategy.hpp"

namespace unisono::tests {

namespace {

// Groups consecutive cases that can share a communicator.
std::vector<std::vector<const Case*>> by_geometry(const std::vector<Case>& cases) {
    std::vector<std::vector<const Case*>> groups;
    for (const Case& one : cases) {
        const bool same = !groups.empty() && groups.back().front()->geometry.size == one.geometry.size &&
                          groups.back().front()->geometry.staging_bytes == one.geometry.staging_bytes;
        if (!same) groups.emplace_back();
        groups.back().push_back(&one);
    }
    return groups;
}

// Every rank exchanges messages with every other; every other receive is asynchronous.
void exchange_letters(Member& member) {
    struct Sheet {
        std::vector<std::uint32_t> words, expected;
        std::shared_ptr<Completion> completion;
    };
    std::vector<std::unique_ptr<Sheet>> sheets;
    std::uint32_t lap = 0;
    for (const std::size_t length : {0, 2, 8, 9, 50'000, 100}) {
        ++lap;
        for (std::uint32_t peer = 0; peer < member.size(); ++peer) {
            if (peer == member.rank()) continue;
            auto out = std::make_unique<Sheet>(), in = std::make_unique<Sheet>();
            out->words = out->expected = letter(member.rank(), peer, lap, length);
            in->words.resize(length);
            in->expected = letter(peer, member.rank(), lap, length);
            out->completion = member.transfer_queue.start(transfer(true, peer, out->words), long_enough);
            if (lap % 2 == 0)
                member.transfer_queue.run(transfer(false, peer, in->words), long_enough);
            else
                in->completion = member.transfer_queue.start(transfer(false, peer, in->words), long_enough);
            sheets.push_back(std::move(out));
            sheets.push_back(std::move(in));
        }
    }
    for (const auto& sheet : sheets) {
        if (sheet->completion) expect_success(*sheet->completion);
        CHECK(sheet->words == sheet->expected);
    }
}

}  // namespace

void collectives_give_the_right_bits(const std::vector<Case>& cases, int repeats) {
    for (const auto& group : by_geometry(cases))
        with_members(group.front()->geometry, [&](Member& member) {
            std::vector<std::shared_ptr<Plan>> plans;
            for (const Case* one : group) plans.push_back(fresh(one->parts[member.rank()]));
            for (int repeat = 0; repeat < repeats; ++repeat)
                for (std::size_t at = 0; at < group.size(); ++at)
                    run_and_check(member.executor, *plans[at], group[at]->parts[member.rank()]);
        });
}

void queued_calls_and_transfers_go_on_together(const std::vector<Case>& cases) {
    for (const auto& group : by_geometry(cases))
        with_members(group.front()->geometry, [&](Member& member) {
            struct Sheet {
                std::vector<std::byte> input, output;
                std::shared_ptr<Completion> completion;
            };
            std::vector<Sheet> sheets(group.size());
            std::thread letters([&] { exchange_letters(member); });
            for (std::size_t at = 0; at < group.size(); ++at) {
                const Part& part = group[at]->parts[member.rank()];
                Sheet& sheet = sheets[at];
                sheet.input = part.input;
                sheet.output.resize(part.shared ? 0 : part.expected.size());
                std::byte* result = part.shared ? sheet.input.data() : sheet.output.data();
                const CollectiveQueue::Call call{fresh(part), sheet.input.data(), result, long_enough};
                if (at % 10 < 9) {
                    sheet.completion = member.collectives.start(call);
                    continue;
                }
                member.collectives.run(call);  // waits for its turn: all earlier calls are done now
                for (std::size_t before = 0; before < at; ++before)
                    CHECK(!sheets[before].completion || sheets[before].completion->done());
            }
            letters.join();
            for (std::size_t at = 0; at < group.size(); ++at) {
                if (sheets[at].completion) expect_success(*sheets[at].completion);
                const Part& part = group[at]->parts[member.rank()];
                CHECK((part.shared ? sheets[at].input : sheets[at].output) == part.expected);
            }
            member.leave();
        });
}

void calls_of_several_threads_take_turns() {
    constexpr int laps = 200;
    with_members({2, 8, page_bytes, 4096}, [](Member& member) {
        // Both threads make the same call, so their order does not matter.
        const std::shared_ptr<Plan> plan = exchange(member.rank(), "one of many");
        const auto go = [&] {
            for (int lap = 0; lap < laps; ++lap) {
                double value = 1;
                member.collectives.run({plan, &value, &value, long_enough});
                CHECK(value == 2);
            }
        };
        std::thread other(go);
        go();
        other.join();
        member.leave();
    });
}

void unsuccessful_spins_get_shorter_and_recover() {
    using std::chrono::microseconds;
    SpinLength spin;
    CHECK(spin.next(microseconds(1000)) == microseconds(1000));
    spin.was_in_vain();
    CHECK(spin.next(microseconds(1000)) == microseconds(250));
    for (int times = 0; times < 10; ++times) spin.was_in_vain();
    CHECK(spin.next(microseconds(1000)) == microseconds(20));
    CHECK(spin.next(microseconds(0)) == microseconds(0));  // if ranks share cores
    for (int times = 0; times < 6; ++times) spin.was_worth_it();
    CHECK(spin.next(microseconds(1000)) == microseconds(1000));
}

void ranks_spin_for_fast_networks_only() {
    using std::chrono::microseconds;
    SpinLength spin;
    for (int times = 0; times < 10; ++times) spin.was_in_vain();
    CHECK(spin.next_far(microseconds(1000)) == microseconds(200));
    for (int times = 0; times < 10; ++times) spin.far_wait_lasted(microseconds(100));
    CHECK(spin.next_far(microseconds(1000)) == microseconds(200));
    for (int times = 0; times < 10; ++times) spin.far_wait_lasted(std::chrono::seconds(1));
    CHECK(spin.next_far(microseconds(1000)) == microseconds(20));
    CHECK(spin.next_far(microseconds(0)) == microseconds(0));  // if ranks share cores
    for (int times = 0; times < 7; ++times) spin.far_wait_lasted(microseconds(60));
    CHECK(spin.next_far(microseconds(1000)) == microseconds(200));
}

// Plain stores for neighbouring cores, stores that bypass the caches for distant ones, and back again when ranks
// migrate.
void messages_are_copied_in_the_faster_way() {
    CopyStrategy strategy;
    CHECK(!strategy.past_caches());
    strategy.note(false, 0.05f);
    strategy.note(true, 0.04f);
    CHECK(!strategy.past_caches());  // slightly faster to write, but not to read
    for (int i = 0; i < 8; ++i) strategy.note(false, 0.4f);
    CHECK(strategy.past_caches());
    for (int i = 0; i < 16; ++i) strategy.note(false, 0.05f);
    CHECK(!strategy.past_caches());
    std::vector<char> from(CopyStrategy::worth_it + 5), to(from.size());
    for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<char>(i * 7);
    for (int put = 0; put < 300; ++put) {  // enough for both ways to be tried
        std::fill(to.begin(), to.end(), 0);
        strategy.put(to.data(), from.data(), from.size());
        CHECK(to == from);
    }
}

}  // namespace unisono::tests
