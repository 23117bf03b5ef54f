#include <algorithm>
#include <random>
#include <thread>

#include "check.hpp"
#include "letters.hpp"
#include "members.hpp"
#include "scenarios.hpp"

namespace unisono::tests {

namespace {

using std::chrono::milliseconds;

constexpr std::size_t lengths[] = {0, 3, 9, 1000, 20'000, 1};  // of the message with each tag
constexpr std::uint32_t tags = std::size(lengths);
constexpr std::uint32_t to_anyone = 100;  // a tag for receives from any rank
constexpr std::size_t anyone_length = 5000;

struct Sheet {
    std::vector<std::uint32_t> words;
    std::uint32_t peer, tag;
    std::shared_ptr<Completion> completion;
};

// Receives the messages of all other ranks with these tags, in random order, half of them asynchronously.
void receive_letters(Member& member, std::uint32_t first_tag, std::uint32_t end_tag, std::mt19937 random) {
    std::vector<Sheet> sheets;
    for (std::uint32_t peer = 0; peer < member.size(); ++peer)
        for (std::uint32_t tag = first_tag; tag < end_tag; ++tag)
            if (peer != member.rank()) sheets.push_back({std::vector<std::uint32_t>(lengths[tag]), peer, tag, nullptr});
    std::shuffle(sheets.begin(), sheets.end(), random);
    for (Sheet& sheet : sheets) {
        const Transfer wanted = transfer(false, sheet.peer, sheet.words, sheet.tag);
        if (random() % 2 == 0)
            sheet.completion = member.transfer_queue.start(wanted, long_enough);
        else
            CHECK(member.transfer_queue.run(wanted, long_enough) == sheet.peer);
    }
    for (const Sheet& sheet : sheets) {
        if (sheet.completion) {
            expect_success(*sheet.completion);
            CHECK(sheet.completion->source() == sheet.peer);
        }
        CHECK(sheet.words == letter(sheet.peer, member.rank(), sheet.tag, lengths[sheet.tag]));
    }
}

// Receives one message of every other rank, in the order of arrival.
void receive_from_anyone(Member& member, bool in_background) {
    std::vector<Sheet> sheets(member.size() - 1);
    std::vector<bool> heard(member.size(), false);
    for (Sheet& sheet : sheets) {
        sheet.words.resize(anyone_length);
        const Transfer wanted = transfer(false, any_rank, sheet.words, to_anyone);
        if (in_background)
            sheet.completion = member.transfer_queue.start(wanted, long_enough);
        else
            sheet.peer = member.transfer_queue.run(wanted, long_enough);
    }
    for (Sheet& sheet : sheets) {
        if (sheet.completion) {
            expect_success(*sheet.completion);
            sheet.peer = static_cast<std::uint32_t>(sheet.completion->source());
        }
        CHECK(sheet.peer != member.rank() && !heard[sheet.peer]);
        heard[sheet.peer] = true;
        CHECK(sheet.words == letter(sheet.peer, member.rank(), to_anyone, anyone_length));
    }
}

}  // namespace

// Every rank sends to every other with several tags, in random order; three threads of each rank receive, so that they
// make progress on each other's messages.
void messages_find_their_receives() {
    for (std::uint32_t lap = 0; lap < 6; ++lap)
        with_members({4, 8, page_bytes, 4096}, [lap](Member& member) {
            std::mt19937 random(10 * lap + member.rank());
            std::vector<Sheet> sheets;
            for (std::uint32_t peer = 0; peer < member.size(); ++peer) {
                if (peer == member.rank()) continue;
                for (std::uint32_t tag = 0; tag < tags; ++tag)
                    sheets.push_back({letter(member.rank(), peer, tag, lengths[tag]), peer, tag, nullptr});
                sheets.push_back({letter(member.rank(), peer, to_anyone, anyone_length), peer, to_anyone, nullptr});
            }
            std::shuffle(sheets.begin(), sheets.end(), random);
            std::thread some([&] { receive_letters(member, 0, tags / 2, std::mt19937(lap)); });
            std::thread others([&] { receive_letters(member, tags / 2, tags, std::mt19937(lap + 1)); });
            std::thread anyone([&] { receive_from_anyone(member, lap % 2 == 0); });
            for (Sheet& sheet : sheets)
                sheet.completion =
                    member.transfer_queue.start(transfer(true, sheet.peer, sheet.words, sheet.tag), long_enough);
            for (std::thread* thread : {&some, &others, &anyone}) thread->join();
            for (const Sheet& sheet : sheets) expect_success(*sheet.completion);
            member.leave();
        });
}

// Rank 0 is reading a long message of rank 1, and waits for others in two threads and asynchronously, when rank 2
// breaks the communicator. No thread may write to the arrays of calls that are over, because they are freed at once.
void receives_end_in_the_middle_of_a_message() {
    with_members({3, 8, page_bytes, 4096}, [](Member& member) {
        constexpr std::size_t length = 20'000'000;
        if (member.rank() == 1) {
            std::vector<std::uint32_t> words(length);
            const auto completion = member.transfer_queue.start(transfer(true, 0, words, 1), long_enough);
            CHECK(completion->wait_until(Clock::now() + long_enough));
        } else if (member.rank() == 2) {
            std::this_thread::sleep_for(milliseconds(15));
            member.endpoint.break_with(Fault::aborted, 2, FaultMessage("aborted"));
        } else {
            const auto wait_for = [&](std::uint32_t peer, std::uint32_t tag) {
                std::vector<std::uint32_t> words(10);
                const FaultReport report =
                    report_of([&] { member.transfer_queue.run(transfer(false, peer, words, tag), long_enough); });
                CHECK(report.fault == Fault::aborted);
            };
            auto begun = std::make_shared<std::vector<std::uint32_t>>(length);
            const auto first = member.transfer_queue.start(transfer(false, 1, *begun, 1), long_enough, begun);
            auto idle = std::make_shared<std::vector<std::uint32_t>>(10);
            const auto second = member.transfer_queue.start(transfer(false, any_rank, *idle, 2), long_enough, idle);
            begun.reset();
            idle.reset();
            std::thread named([&] { wait_for(1, 3); });
            wait_for(any_rank, 4);
            named.join();
            CHECK(first->wait_until(Clock::now() + long_enough) && second->wait_until(Clock::now() + long_enough));
            CHECK(second->fault_report().fault == Fault::aborted && second->source() == -1);
        }
        member.leave();
    });
}

}  // namespace unisono::tests
