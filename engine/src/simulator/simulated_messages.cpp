// The messages of a simulation: when they leave, share links, and arrive.
#include <algorithm>

#include "simulation.hpp"

namespace unisono {

// Makes a unit ready for the messages of the step that it has reached.
void Simulation::post(std::uint32_t unit, Position& position, double now) {
    if (!has_rendezvous_ || position.pass >= programs_.passes) return;
    const std::uint32_t end = end_of(unit);
    const std::int32_t step = programs_.step[position.action];
    std::uint32_t action = std::max(position.action, position.posted);
    for (; action < end && programs_.step[action] == step; ++action) {
        const std::int64_t sender = programs_.sender[action];
        if (sender < 0) continue;
        posted_[at(position.pass, action)] = now;
        if (handed_[at(position.pass, static_cast<std::uint32_t>(sender))] != never)
            try_to_leave(position.pass, static_cast<std::uint32_t>(sender));
    }
    position.posted = std::max(position.posted, action);
}

// Lets a message leave if all its receivers are ready, or do not have to be.
void Simulation::try_to_leave(std::uint32_t pass, std::uint32_t action) {
    const double handed = handed_[at(pass, action)];
    double time = handed;
    if (has_rendezvous_) {
        for (std::uint32_t index = first_reader_[action]; index < first_reader_[action + 1]; ++index) {
            const double extra = cost(programs_.rendezvous_s, pass, readers_[index]);
            if (extra < 0) continue;
            const double posted = posted_[at(pass, readers_[index])];
            if (posted == never) return;
            time = std::max(time, std::max(handed, posted) + extra);
        }
    }
    handed_[at(pass, action)] = never;
    queue_.push({time, EventType::leave, action, pass});
}

void Simulation::leave(std::uint32_t pass, std::uint32_t action, double now) {
    const std::uint32_t unit = unit_of_[action];
    if (shares_) {
        if (units_[unit].busy_ports < programs_.ports) {
            ++units_[unit].busy_ports;
            start_flows(pass, action, now);
        } else {
            departures_[unit].push_back({action, pass});
        }
        return;
    }
    double* const ports = &out_ports_[unit * programs_.ports];
    double& port = *std::min_element(ports, ports + programs_.ports);
    const double begin = std::max(now, port);
    port = begin + cost(programs_.leaving_s, pass, action);
    if (record_) times_.leave[at(pass, action)] = begin;
    for (std::uint32_t index = first_reader_[action]; index < first_reader_[action + 1]; ++index)
        queue_.push({begin + programs_.flight_s[readers_[index]], EventType::head, readers_[index], pass});
}

// The head of a message reaches its receiver.
void Simulation::take_in(std::uint32_t pass, std::uint32_t action, double now) {
    if (shares_) {  // the whole message: its bytes have had their time on the links
        arrive(pass, action, now);
        return;
    }
    double* const ports = &in_ports_[unit_of_[action] * programs_.ports];
    double& port = *std::min_element(ports, ports + programs_.ports);
    port = std::max(now, port) + cost(programs_.occupied_s, pass, action);
    arrive(pass, action, port);
}

void Simulation::arrive(std::uint32_t pass, std::uint32_t action, double when) {
    arrival_[at(pass, action)] = when;
    const std::uint32_t unit = unit_of_[action];
    if (programs_.tracks > 1) {
        queue_.push({when, EventType::wake, unit, 0});
    } else if (positions_[unit].action == action && positions_[unit].pass == pass) {
        resumed_.push_back(unit);
    }
}

// ---- shared links --------------------------------------------------------------------------------------------------

void Simulation::start_flows(std::uint32_t pass, std::uint32_t action, double now) {
    if (record_) times_.leave[at(pass, action)] = now;
    std::uint32_t& left = flows_left_[at(pass, action)];
    for (std::uint32_t index = first_reader_[action]; index < first_reader_[action + 1]; ++index) {
        const std::uint32_t reader = readers_[index];
        if (cost(programs_.occupied_s, pass, reader) > 0) {
            flows_->start(links_.route[reader], cost(links_.bytes, pass, reader), now, reader, pass);
            ++left;
        } else {
            queue_.push({now + programs_.flight_s[reader], EventType::head, reader, pass});
        }
    }
    if (left == 0) release_port(unit_of_[action], now);
}

void Simulation::end_flow(std::uint32_t number, double now) {
    const Flows::Flow flow = (*flows_)[number];
    flows_->end(number);
    queue_.push({now + programs_.flight_s[flow.action], EventType::head, flow.action, flow.pass});
    const auto sender = static_cast<std::uint32_t>(programs_.sender[flow.action]);
    if (--flows_left_[at(flow.pass, sender)] == 0) release_port(unit_of_[sender], now);
}

void Simulation::release_port(std::uint32_t unit, double now) {
    --units_[unit].busy_ports;
    if (departures_[unit].empty()) return;
    const Departure next = departures_[unit].front();
    departures_[unit].pop_front();
    ++units_[unit].busy_ports;
    start_flows(next.pass, next.action, now);
}

void Simulation::share_links(double now) {
    for (const Flows::Change& change : flows_->update(now))
        queue_.push({change.end, EventType::flow_end, change.flow, change.version & 0x3fffffff});
}

SimulatedTimes simulate(const SimulatedPrograms& programs, const SharedLinks& links, bool record,
                        const Progress& progress) {
    return Simulation(programs, links, record, progress).run();
}

}  // namespace unisono
