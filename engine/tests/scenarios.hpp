// The scenarios of threads.cpp. Each function ends the program if a check fails.
#pragma once

#include <vector>

#include "cases.hpp"

namespace unisono::tests {

// scenarios_calls.cpp: calls that succeed.
void collectives_give_the_right_bits(const std::vector<Case>& cases, int repeats);
void queued_calls_and_transfers_go_on_together(const std::vector<Case>& cases);
void calls_of_several_threads_take_turns();
void unsuccessful_spins_get_shorter_and_recover();
void ranks_spin_for_fast_networks_only();
void messages_are_copied_in_the_faster_way();

// scenarios_transfers.cpp: matching of messages and receives.
void messages_find_their_receives();
void receives_end_in_the_middle_of_a_message();

// scenarios_event_log.cpp: the event log.
void event_logs_are_read_while_they_are_written();
void both_ends_of_a_transfer_have_its_number();

// scenarios_endings.cpp: faults, and ranks that leave.
void an_abort_reaches_every_waiting_rank();
void different_calls_are_reported();
void a_late_rank_is_named();
void a_rank_that_has_left_is_reported();
void a_rank_may_leave_when_its_part_is_done();

// scenarios_far.cpp: ranks on two hosts.
void messages_wait_for_a_rank_that_joins_late();
void a_rank_that_is_cut_off_is_named_on_every_host();
void the_clock_of_a_far_rank_is_read();
void strangers_are_turned_away();
void two_ranks_share_one_connection();
void a_rank_that_leaves_loses_no_letter();
void the_oldest_of_many_strangers_makes_room();

// scenarios_ucx.cpp: the transport over UCX.
void active_messages_without_a_valid_ticket_are_dropped();
void messages_take_ucx_and_other_letters_tcp();
void the_last_messages_of_a_process_arrive();
void ucx_does_not_read_a_payload_after_detaching();

}  // namespace unisono::tests
