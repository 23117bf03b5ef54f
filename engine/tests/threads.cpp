// Scenarios in which the ranks are threads of one process. They behave like processes, but the thread sanitizer sees
// both ends of every channel (`make sanitize`).
//
//     threads FILE [repeats]
//
// The file comes from tools/dump_program.py.
#include <cstdio>
#include <cstdlib>

#include "check.hpp"
#include "scenarios.hpp"

int main(int count, char** arguments) {
    using namespace unisono::tests;
    CHECK(count > 1);
    const std::vector<Case> cases = read_cases(arguments[1]);
    const int repeats = count > 2 ? std::atoi(arguments[2]) : 3;
    collectives_give_the_right_bits(cases, repeats);
    queued_calls_and_transfers_go_on_together(cases);
    calls_of_several_threads_take_turns();
    unsuccessful_spins_get_shorter_and_recover();
    messages_are_copied_in_the_faster_way();
    messages_find_their_receives();
    receives_end_in_the_middle_of_a_message();
    event_logs_are_read_while_they_are_written();
    both_ends_of_a_transfer_have_its_number();
    an_abort_reaches_every_waiting_rank();
    different_calls_are_reported();
    a_late_rank_is_named();
    a_rank_that_has_left_is_reported();
    a_rank_may_leave_when_its_part_is_done();
    std::printf("%zu cases, %d times each, and all endings: passed\n", cases.size(), repeats);
    return 0;
}
