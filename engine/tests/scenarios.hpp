// What threads.cpp goes through. Each function checks by itself, and ends the program if something is not so.
#pragma once

#include <vector>

#include "cases.hpp"

namespace unisono::tests {

// scenarios_calls.cpp: things that end well.
void collectives_give_the_right_bits(const std::vector<Case>& cases, int repeats);
void queued_calls_and_transfers_go_on_together(const std::vector<Case>& cases);
void calls_of_several_threads_take_turns();
void spinning_in_vain_gets_shorter_and_recovers();
void messages_are_written_in_the_quicker_way();

// scenarios_transfers.cpp: which message goes to which receive.
void messages_find_their_receives();
void receives_end_in_the_middle_of_a_message();

// scenarios_event_log.cpp: what is written down of it.
void event_logs_are_read_while_they_are_written();
void both_ends_of_a_transfer_have_its_number();

// scenarios_endings.cpp: things that do not, and leaving.
void abort_reaches_everyone_who_waits();
void different_calls_are_noticed();
void a_late_rank_is_named();
void a_rank_that_has_left_is_noticed();
void a_rank_may_leave_when_its_part_is_done();

}  // namespace unisono::tests
