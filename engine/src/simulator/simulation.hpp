// The state of a running simulation. unisono/simulation.hpp says what it executes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "event_queue.hpp"
#include "flows.hpp"
#include "unisono/simulation.hpp"

namespace unisono {

class Simulation {
  public:
    Simulation(const SimulatedPrograms& programs, const SharedLinks& links, bool record, const Progress& progress);
    SimulatedTimes run();

  private:
    // The position of a unit in one track, and the action up to which it is ready for messages.
    struct Position {
        std::uint32_t pass, action, posted;
    };
    struct Unit {
        double free = 0, busy = 0;  // the time from which the processor is free; how long it has been busy
        std::uint32_t current = 0;  // the track of its last action
        std::uint32_t busy_ports = 0;
        bool awaits_room = false;
        std::int32_t step = -1, level_before = 0, level = 0;
    };
    // The message of an action, to be sent in a pass.
    struct Departure {
        std::uint32_t action, pass;
    };

    // Processors.
    void run_ahead(std::uint32_t unit);
    void wake(std::uint32_t unit, double now);
    double ready_time(std::uint32_t unit, const Position& at, double now);
    double room_time(std::uint32_t pass, std::uint32_t reader) const;
    void execute(std::uint32_t unit, Position& at, double start);
    void set_level(Unit& unit, std::uint32_t action);
    void resume(std::uint32_t unit, double when);

    // Messages.
    void post(std::uint32_t unit, Position& at, double now);
    void try_to_leave(std::uint32_t pass, std::uint32_t action);
    void leave(std::uint32_t pass, std::uint32_t action, double now);
    void start_flows(std::uint32_t pass, std::uint32_t action, double now);
    void end_flow(std::uint32_t flow, double now);
    void release_port(std::uint32_t unit, double now);
    void take_in(std::uint32_t pass, std::uint32_t action, double now);
    void arrive(std::uint32_t pass, std::uint32_t action, double when);
    void share_links(double now);

    std::size_t at(std::uint32_t pass, std::uint32_t action) const { return (pass % rows_) * actions_ + action; }
    double cost(const PerPass& of, std::uint32_t pass, std::uint32_t action) const {
        return (pass + 1 == programs_.passes ? of.last : of.whole)[action];
    }
    std::uint32_t end_of(std::uint32_t unit) const { return static_cast<std::uint32_t>(programs_.first[unit + 1]); }

    const SimulatedPrograms& programs_;
    const SharedLinks& links_;
    const Progress& progress_;
    const std::size_t actions_, units_count_;
    const bool record_, has_room_, shares_;
    bool has_rendezvous_ = false;
    bool in_order_ = false;  // whether messages leave through events, because their order is not that of the programs
    std::size_t rows_;       // passes whose state is kept

    EventQueue queue_;
    std::unique_ptr<Flows> flows_;
    std::vector<Unit> units_;
    std::vector<Position> positions_;  // of each unit and track
    std::vector<std::uint32_t> unit_of_, readers_, first_reader_;
    std::vector<double> out_ports_, in_ports_;
    std::vector<std::deque<Departure>> departures_;  // that wait for a port, where links are shared
    std::vector<double> arrival_, read_, posted_, handed_;
    std::vector<std::uint32_t> flows_left_;  // of the message of an action
    std::vector<std::int32_t> message_level_;
    std::vector<std::uint32_t> resumed_;  // units that can continue
    std::uint64_t executed_ = 0;
    SimulatedTimes times_;
};

}  // namespace unisono
