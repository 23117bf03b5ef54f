// Ranks that are threads of one process. What they do, and what it comes to, is the same as with processes; but here
// the thread sanitizer sees both ends of every channel (`make sanitize`).
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
    spinning_in_vain_gets_shorter_and_recovers();
    messages_are_written_in_the_quicker_way();
    messages_find_their_receives();
    receives_end_in_the_middle_of_a_message();
    event_logs_are_read_while_they_are_written();
    both_ends_of_a_transfer_have_its_number();
    abort_reaches_everyone_who_waits();
    different_calls_are_noticed();
    a_late_rank_is_named();
    a_rank_that_has_left_is_noticed();
    a_rank_may_leave_when_its_part_is_done();
    std::printf("%zu cases, %d times each, and all endings: fine\n", cases.size(), repeats);
    return 0;
}
