#include <thread>

#include "check.hpp"
#include "letters.hpp"
#include "members.hpp"
#include "scenarios.hpp"
#include "small_plans.hpp"

namespace unisono::tests {

namespace {

using std::chrono::milliseconds;

constexpr Geometry two_ranks{2, 8, page_bytes, 4096};

FaultReport run(Member& member, const std::shared_ptr<Plan>& plan, std::vector<std::byte>& data,
                Nanoseconds timeout = long_enough) {
    return report_of([&] { member.executor.run(*plan, data.data(), data.data(), deadline_after(timeout)); });
}

}  // namespace

void an_abort_reaches_every_waiting_rank() {
    with_members({5, 8, page_bytes, 4096}, [](Member& member) {
        const std::uint32_t rank = member.rank(), aborting = 4;
        std::vector<std::byte> data(2000);
        Transfer transfer{false, aborting, data.data(), data.size(), transfer_label(DType::uint8, data.size())};
        FaultReport report;
        if (rank == aborting) {
            std::this_thread::sleep_for(milliseconds(30));
            report = member.endpoint.break_with(Fault::aborted, static_cast<int>(rank), FaultMessage("aborted"));
        } else if (rank == 0) {  // waits in a collective
            report = run(member, message(rank, aborting, rank, data.size()), data);
        } else if (rank == 1) {  // has started one
            const auto plan = message(rank, aborting, rank, data.size());
            const auto completion = member.collectives.start({plan, data.data(), data.data(), long_enough});
            CHECK(completion->wait_until(Clock::now() + long_enough));
            report = completion->fault_report();
        } else if (rank == 2) {  // waits for a transfer
            report = report_of([&] { member.transfer_queue.run(transfer, long_enough); });
        } else {  // has started two
            const auto first = member.transfer_queue.start(transfer, long_enough);
            const auto second = member.transfer_queue.start(transfer, long_enough);
            CHECK(first->wait_until(Clock::now() + long_enough) && second->wait_until(Clock::now() + long_enough));
            CHECK(second->fault_report().fault == Fault::aborted);
            report = first->fault_report();
        }
        CHECK(report.fault == Fault::aborted && report.culprit == 4 && says(report, "aborted"));
        CHECK(member.endpoint.broken());
        member.leave();
    });
}

void different_calls_are_reported() {
    with_members(two_ranks, [](Member& member) {
        std::vector<std::byte> data(sizeof(double));
        const auto plan = exchange(member.rank(), member.rank() == 0 ? "apples" : "pears");
        const FaultReport report = run(member, plan, data);
        CHECK(report.fault == Fault::mismatch && says(report, "call_mismatch|") && says(report, "_call=apples") &&
              says(report, "_call=pears"));
    });
}

void a_late_rank_is_named() {
    with_members(two_ranks, [](Member& member) {
        std::vector<std::byte> data(sizeof(double));
        const auto plan = exchange(member.rank(), "a call");
        if (member.rank() == 0) {
            const FaultReport report = run(member, plan, data, milliseconds(50));
            CHECK(report.fault == Fault::timeout && report.culprit == 1 && says(report, "timed_out_in_call|") &&
                  says(report, "\nnot_entered|rank=@1"));
            return;
        }
        while (!member.endpoint.broken()) std::this_thread::sleep_for(milliseconds(1));
        CHECK(run(member, plan, data).fault == Fault::timeout);
    });
}

void a_rank_that_has_left_is_reported() {
    with_members(two_ranks, [](Member& member) {
        if (member.rank() == 1) return member.leave();
        std::vector<std::byte> data(sizeof(double));
        const FaultReport report = run(member, exchange(0, "a call"), data);
        CHECK(report.fault == Fault::peer_lost && report.culprit == 1 && says(report, "peer_closed_in_call|peer=@1"));
    });
}

// Rank 0 waits for room in its staging area, first because of rank 1 and then because of rank 2. Meanwhile rank 1
// finishes its calls and leaves, which it may do because no rank waits for it any more.
void a_rank_may_leave_when_its_part_is_done() {
    with_members({3, 8, page_bytes, 4096}, [](Member& member) {
        const std::uint32_t rank = member.rank();
        std::vector<std::byte> data(page_bytes, std::byte{7});
        std::this_thread::sleep_for(rank == 1 ? milliseconds(50) : rank == 2 ? milliseconds(150) : milliseconds(0));
        using Letter = std::pair<std::uint32_t, std::uint64_t>;  // receiver and bytes
        for (const auto& [to, bytes] : {Letter{1, page_bytes / 2}, Letter{2, page_bytes / 2}, Letter{2, page_bytes}}) {
            const FaultReport report = run(member, message(rank, 0, to, bytes), data);
            if (report.fault != Fault::none) give_up(report.text, "rank", static_cast<int>(rank));
        }
        if (rank != 0) member.leave();
    });
}

}  // namespace unisono::tests
