// The messages of a simulation: when they leave, share links, and arrive.
#include <algorithm>

#include "simulation.hpp"

namespace unisono {

// Makes a unit ready for the messages of the step that it has reached.
void Simulation::post(std::uint32_t unit, Lane& lane, double now) {
    if (!has_rendezvous_ || lane.pass >= programs_.passes) return;
    const std::uint32_t end = end_of(unit);
    const std::int32_t step = programs_.step[lane.action];
    std::uint32_t action = std::max(lane.action, lane.posted);
    for (; action < end && programs_.step[action] == step; ++action) {
        const std::int64_t sender = programs_.sender[action];
        if (sender < 0) continue;
        rendezvous_[at(lane.pass, action)].posted = now;
        const double handed = rendezvous_[at(lane.pass, static_cast<std::uint32_t>(sender))].handed;
        if (handed != never) try_to_leave(lane.pass, static_cast<std::uint32_t>(sender), handed);
    }
    lane.posted = std::max(lane.posted, action);
}

// Lets a message leave if all its receivers are ready, or do not have to be.
void Simulation::try_to_leave(std::uint32_t pass, std::uint32_t action, double handed) {
    double time = handed;
    if (has_rendezvous_) {
        double& waiting = rendezvous_[at(pass, action)].handed;
        waiting = handed;
        for (const std::uint32_t reader : actions_.readers(actions_(pass, action))) {
            const double extra = actions_(pass, reader).rendezvous_s;
            if (extra < 0) continue;
            const double posted = rendezvous_[at(pass, reader)].posted;
            if (posted == never) return;
            time = std::max(time, std::max(handed, posted) + extra);
        }
        waiting = never;
    }
    queue_.push({time, EventType::leave, action, pass});
}

void Simulation::leave(std::uint32_t pass, std::uint32_t action, double now) {
    const PackedAction& sent = actions_(pass, action);
    if (shares_) {
        if (units_[sent.unit].busy_ports == programs_.ports)
            departures_[sent.unit].messages.push_back({action, pass});
        else if (start_flows(pass, action, now))
            ++units_[sent.unit].busy_ports;
        return;
    }
    double* const ports = &out_ports_[sent.unit * programs_.ports];
    double& port = *std::min_element(ports, ports + programs_.ports);
    const double begin = std::max(now, port);
    port = begin + sent.leaving_s;
    if (record_) times_.leave[at(pass, action)] = begin;
    for (const std::uint32_t reader : actions_.readers(sent))
        queue_.push({begin + actions_(pass, reader).flight_s, EventType::head, reader, pass});
}

// The head of a message reaches its receiver.
void Simulation::take_in(std::uint32_t pass, std::uint32_t action, double now) {
    if (shares_) {  // the whole message: its bytes have had their time on the links
        arrive(pass, action, now);
        return;
    }
    const PackedAction& received = actions_(pass, action);
    double* const ports = &in_ports_[received.unit * programs_.ports];
    double& port = *std::min_element(ports, ports + programs_.ports);
    port = std::max(now, port) + received.occupied_s;
    arrive(pass, action, port);
}

void Simulation::arrive(std::uint32_t pass, std::uint32_t action, double when) {
    receipts_[at(pass, action)].arrival = when;
    if (record_) times_.arrival[at(pass, action)] = when;
    const std::uint32_t unit = actions_(pass, action).unit;
    const std::uint32_t lane = lane_of(unit, pass);
    if (lanes_[lane].action == action && lanes_[lane].pass == pass) resume(lane, std::max(when, units_[unit].free));
}

// ---- shared links --------------------------------------------------------------------------------------------------

// Starts the flows of a message; returns whether it has any. Without bytes it arrives after its latency.
bool Simulation::start_flows(std::uint32_t pass, std::uint32_t action, double now) {
    if (record_) times_.leave[at(pass, action)] = now;
    std::uint32_t started = 0;
    for (const std::uint32_t reader : actions_.readers(actions_(pass, action))) {
        const PackedAction& received = actions_(pass, reader);
        if (received.occupied_s > 0) {
            const auto bytes = pass + 1 == programs_.passes ? links_.bytes.last : links_.bytes.whole;
            flows_->start(links_.route[reader], bytes[reader], now, reader, pass);
            ++started;
        } else {
            queue_.push({now + received.flight_s, EventType::head, reader, pass});
        }
    }
    if (started > 0) flows_left_[at(pass, action)] = started;
    return started > 0;
}

void Simulation::end_flow(std::uint32_t number, double now) {
    const std::uint32_t action = (*flows_)[number].action, pass = (*flows_)[number].pass;
    flows_->end(number);
    const PackedAction& received = actions_(pass, action);
    queue_.push({now + received.flight_s, EventType::head, action, pass});
    if (--flows_left_[at(pass, received.sender)] == 0) release_port(actions_(pass, received.sender).unit, now);
}

// Gives a port to the next message that waits for one; those without bytes do not occupy it.
void Simulation::release_port(std::uint32_t unit, double now) {
    Departures& waiting = departures_[unit];
    while (waiting.next < waiting.messages.size()) {
        const auto [action, pass] = waiting.messages[waiting.next++];
        if (waiting.next == waiting.messages.size()) {
            waiting.messages.clear();
            waiting.next = 0;
        }
        if (start_flows(pass, action, now)) return;
    }
    --units_[unit].busy_ports;
}

void Simulation::share_links(double now) {
    const auto& changes = flows_->update(now);
    count_work(flows_->visited());
    for (const Flows::Change& change : changes)
        queue_.push({change.end, EventType::flow_end, change.flow, change.version & 0x3fffffff});
}

SimulatedTimes simulate(const SimulatedPrograms& programs, const SharedLinks& links, bool record,
                        const Progress& progress) {
    return Simulation(programs, links, record, progress).run();
}

}  // namespace unisono
