// Scenarios in which the ranks are threads of one process. They behave like processes, but the thread sanitizer sees
// both ends of every channel (`make sanitize`).
//
//     threads FILE [repeats [UCX]]
//
// The file comes from tools/dump_program.py. The scenarios run on one host, and on two hosts that are connected by a
// fake network and by TCP; or, given the path of libucp.so, on two hosts that are connected by UCX.
#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "check.hpp"
#include "hosts.hpp"
#include "scenarios.hpp"

namespace {

using namespace unisono::tests;

// The channels to all end at the ranks of a host, and these programs were compiled for one host.
bool uses_channel_to_all(const Case& one) {
    return std::any_of(one.parts.begin(), one.parts.end(), [](const Part& part) {
        const auto& channels = part.plan->program->channels;
        return std::any_of(channels.begin(), channels.end(),
                           [](const unisono::ChannelUse& use) { return use.reach == unisono::Reach::all; });
    });
}

void run_scenarios(const std::vector<Case>& cases, int repeats) {
    collectives_give_the_right_bits(cases, repeats);
    queued_calls_and_transfers_go_on_together(cases);
    calls_of_several_threads_take_turns();
    messages_find_their_receives();
    receives_end_in_the_middle_of_a_message();
    event_logs_are_read_while_they_are_written();
    both_ends_of_a_transfer_have_its_number();
    an_abort_reaches_every_waiting_rank();
    different_calls_are_reported();
    a_late_rank_is_named();
    a_rank_that_has_left_is_reported();
    a_rank_may_leave_when_its_part_is_done();
}

void run_over_ucx(const std::vector<Case>& cases, const std::string& library) {
    network_in_use = Network::ucx;
    ucx_in_use = std::make_shared<unisono::UcxContext>(
        std::vector<std::string>{library},
        unisono::UcxContext::Settings{{"NET_DEVICES", "lo"}, {"TCP_TX_SEG_SIZE", "256k"}, {"TCP_RX_SEG_SIZE", "256k"}});
    active_messages_without_a_valid_ticket_are_dropped();
    messages_take_ucx_and_other_letters_tcp();
    the_last_messages_of_a_process_arrive();
    ucx_does_not_read_a_payload_after_detaching();
    run_scenarios(cases, 1);
    messages_wait_for_a_rank_that_joins_late();
    the_clock_of_a_far_rank_is_read();
    std::printf("UCX %s, %zu cases: passed\n", ucx_in_use->version().c_str(), cases.size());
    ucx_in_use.reset();
}

}  // namespace

int main(int count, char** arguments) {
    CHECK(count > 1);
    const std::vector<Case> cases = read_cases(arguments[1]);
    const int repeats = count > 2 ? std::atoi(arguments[2]) : 3;
    std::vector<Case> between_hosts;
    std::copy_if(cases.begin(), cases.end(), std::back_inserter(between_hosts),
                 [](const Case& one) { return !uses_channel_to_all(one); });
    CHECK(between_hosts.size() > cases.size() / 2);
    if (count > 3) {
        run_over_ucx(between_hosts, arguments[3]);
        return 0;
    }
    run_scenarios(cases, repeats);
    unsuccessful_spins_get_shorter_and_recover();
    ranks_spin_for_fast_networks_only();
    messages_are_copied_in_the_faster_way();
    for (const Network network : {Network::fake, Network::tcp}) {
        network_in_use = network;
        run_scenarios(between_hosts, 1);
        messages_wait_for_a_rank_that_joins_late();
        the_clock_of_a_far_rank_is_read();
    }
    network_in_use = Network::fake;
    a_rank_that_is_cut_off_is_named_on_every_host();
    network_in_use = Network::tcp;
    strangers_are_turned_away();
    two_ranks_share_one_connection();
    a_rank_that_leaves_loses_no_letter();
    the_oldest_of_many_strangers_makes_room();
    std::printf("%zu cases, %d times each, and all endings: passed\n", cases.size(), repeats);
    return 0;
}
