// The state of a running simulation. unisono/simulation.hpp says what it executes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "event_queue.hpp"
#include "flows.hpp"
#include "packed_actions.hpp"
#include "unisono/simulation.hpp"

namespace unisono {

class Simulation {
  public:
    Simulation(const SimulatedPrograms& programs, const SharedLinks& links, bool record, const Progress& progress);
    SimulatedTimes run();

  private:
    // A unit in one track: its next action, the action up to which it is ready for messages, and the end of the last.
    struct Lane {
        std::uint32_t pass, action, posted;
        bool awaits_room = false;  // whether it is not known when its next action has room for what it sends
        double free = 0;
    };
    struct Unit {
        double free = 0, busy = 0;  // the time from which the processor is free; how long it has been busy
        double woken = never;       // the time of its next wake event
        std::uint32_t current = 0;  // the track of its last action
        std::uint32_t busy_ports = 0;
        std::int32_t step = -1, level_before = 0, level = 0;
    };
    // What happens to the message that an action receives: when it has arrived, and when it has left its channel.
    struct Receipt {
        double arrival = never, read = never;
    };
    // A message that uses a rendezvous: when its sender has handed it over, and when its receiver was ready.
    struct Rendezvous {
        double handed = never, posted = never;
    };
    // Messages of a unit that wait for a port, where links are shared.
    struct Departures {
        struct Message {
            std::uint32_t action, pass;
        };
        std::vector<Message> messages;
        std::size_t next = 0;
    };

    // Processors.
    void run_ahead(std::uint32_t lane);
    void wake(std::uint32_t unit, double now);
    void wake_at(std::uint32_t unit, double when);
    double ready_time(Lane& lane, double free);
    void offer_room(std::uint32_t lane);
    double room_time(std::uint32_t pass, const PackedAction& reader) const;
    void execute(std::uint32_t unit, Lane& lane, double start);
    void set_level(Unit& unit, std::uint32_t action);
    void resume(std::uint32_t lane, double when);

    // Messages.
    void post(std::uint32_t unit, Lane& lane, double now);
    void try_to_leave(std::uint32_t pass, std::uint32_t action, double handed);
    void leave(std::uint32_t pass, std::uint32_t action, double now);
    bool start_flows(std::uint32_t pass, std::uint32_t action, double now);
    void end_flow(std::uint32_t flow, double now);
    void release_port(std::uint32_t unit, double now);
    void take_in(std::uint32_t pass, std::uint32_t action, double now);
    void arrive(std::uint32_t pass, std::uint32_t action, double when);
    void share_links(double now);

    // Reports progress now and then, so that a long simulation can be interrupted.
    void count_work(std::uint64_t amount) {
        if ((work_ += amount) < work_between_reports) return;
        work_ = 0;
        progress_(executed_);
    }

    // Division is slow, and mostly not needed.
    static std::uint32_t remainder(std::uint32_t pass, std::uint32_t of) { return pass < of ? pass : pass % of; }
    std::size_t at(std::uint32_t pass, std::uint32_t action) const {
        return remainder(pass, rows_) * actions_count_ + action;
    }
    std::uint32_t lane_of(std::uint32_t unit, std::uint32_t pass) const {
        return unit * programs_.tracks + remainder(pass, programs_.tracks);
    }
    std::uint32_t end_of(std::uint32_t unit) const { return static_cast<std::uint32_t>(programs_.first[unit + 1]); }

    const SimulatedPrograms& programs_;
    const SharedLinks& links_;
    const Progress& progress_;
    const PackedActions actions_;
    const std::size_t actions_count_, units_count_;
    const bool record_, has_room_, shares_, has_rendezvous_;
    const bool runs_ahead_;  // whether the tracks of a unit do not wait for each other: there is one, or no work
    const bool in_order_;    // whether messages leave through events, because their order is not that of the programs
    const std::uint32_t rows_;  // passes whose state is kept

    EventQueue queue_;
    std::unique_ptr<Flows> flows_;
    std::vector<Unit> units_;
    std::vector<Lane> lanes_;  // of each unit and track
    std::vector<double> out_ports_, in_ports_;
    std::vector<Departures> departures_;     // of each unit
    LargeVector<Receipt> receipts_;          // of each pass that is kept, and action
    LargeVector<Rendezvous> rendezvous_;     // likewise: `handed` of what an action sends, `posted` of what it receives
    std::vector<std::uint32_t> flows_left_;  // of the message of an action
    std::vector<std::int32_t> message_level_;
    std::vector<std::uint32_t> resumed_;  // lanes that can continue
    static constexpr std::uint64_t work_between_reports = 1 << 16;
    std::uint64_t executed_ = 0, work_ = 0;
    SimulatedTimes times_;
};

}  // namespace unisono
