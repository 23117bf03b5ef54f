#include "simulation.hpp"

#include <algorithm>
#include <stdexcept>

namespace unisono {

namespace {

constexpr std::uint64_t events_between_checks = 1 << 16;

bool any_rendezvous(const PerPass& rendezvous) {
    const auto is_set = [](double extra) { return extra >= 0; };
    return std::any_of(rendezvous.whole.begin(), rendezvous.whole.end(), is_set) ||
           std::any_of(rendezvous.last.begin(), rendezvous.last.end(), is_set);
}

std::size_t kept_rows(const SimulatedPrograms& programs, bool record) {
    if (record || programs.room.empty()) return programs.passes;
    // A channel of bounded depth lets a sender get only a bounded number of passes ahead of its receiver.
    std::int64_t ahead = 0;
    for (const std::int64_t passes : programs.room_passes) ahead = std::max(ahead, passes);
    return std::min<std::uint64_t>(programs.passes, static_cast<std::uint64_t>(ahead + 2) * programs.tracks);
}

}  // namespace

Simulation::Simulation(const SimulatedPrograms& programs, const SharedLinks& links, bool record,
                       const Progress& progress)
    : programs_(programs), links_(links), progress_(progress), actions_(programs.sender.size()),
      units_count_(programs.first.size() - 1), record_(record), has_room_(!programs.room.empty()),
      shares_(links.hops > 0), rows_(kept_rows(programs, record)) {
    if (actions_ >= 0xffffffffu || programs.passes >= 0x3fffffffu) throw std::invalid_argument("too many actions");
    has_rendezvous_ = any_rendezvous(programs.rendezvous_s);
    in_order_ = has_rendezvous_ || shares_ || programs.tracks > 1;
    unit_of_.resize(actions_);
    for (std::size_t unit = 0; unit < units_count_; ++unit)
        std::fill(unit_of_.begin() + programs.first[unit], unit_of_.begin() + programs.first[unit + 1],
                  static_cast<std::uint32_t>(unit));
    first_reader_.assign(actions_ + 1, 0);
    for (const std::int64_t sender : programs.sender)
        if (sender >= 0) ++first_reader_[sender + 1];
    for (std::size_t action = 0; action < actions_; ++action) first_reader_[action + 1] += first_reader_[action];
    readers_.resize(first_reader_.back());
    std::vector<std::uint32_t> next(first_reader_.begin(), first_reader_.end() - 1);
    for (std::size_t action = 0; action < actions_; ++action)
        if (programs.sender[action] >= 0)
            readers_[next[programs.sender[action]]++] = static_cast<std::uint32_t>(action);
    units_.resize(units_count_);
    for (std::size_t unit = 0; unit < units_count_; ++unit)
        for (std::uint32_t track = 0; track < programs.tracks; ++track) {
            const auto first = static_cast<std::uint32_t>(programs.first[unit]);
            positions_.push_back({first == end_of(unit) ? programs.passes : track, first, first});
        }
    out_ports_.assign(units_count_ * programs.ports, 0);
    in_ports_.assign(units_count_ * programs.ports, 0);
    arrival_.assign(rows_ * actions_, never);
    if (has_room_) read_.assign(rows_ * actions_, never);
    if (in_order_) handed_.assign(rows_ * actions_, never);
    if (has_rendezvous_) posted_.assign(rows_ * actions_, never);
    if (shares_) {
        flows_ = std::make_unique<Flows>(links_);
        departures_.resize(units_count_);
        flows_left_.assign(rows_ * actions_, 0);
    }
    if (record_) {
        for (auto* each : {&times_.start, &times_.end, &times_.leave}) each->assign(rows_ * actions_, never);
        times_.level.assign(actions_, 0);
        message_level_.assign(actions_, 0);
    }
}

SimulatedTimes Simulation::run() {
    for (std::uint32_t unit = 0; unit < units_count_; ++unit)
        for (std::uint32_t track = 0; track < programs_.tracks; ++track)
            post(unit, positions_[unit * programs_.tracks + track], 0);
    for (std::uint32_t unit = 0; unit < units_count_; ++unit) resume(unit, 0);
    double now = 0;
    for (;;) {
        while (!resumed_.empty()) {
            const std::uint32_t unit = resumed_.back();
            resumed_.pop_back();
            run_ahead(unit);
        }
        if (shares_ && flows_->is_dirty() && (queue_.empty() || queue_.top().time > now)) share_links(now);
        if (queue_.empty()) break;
        const TimedEvent event = queue_.pop();
        now = event.time;
        switch (event.type()) {
            case EventType::flow_end:
                if (((*flows_)[event.index()].version & 0x3fffffff) == event.pass()) end_flow(event.index(), now);
                break;
            case EventType::leave: leave(event.pass(), event.index(), now); break;
            case EventType::head: take_in(event.pass(), event.index(), now); break;
            case EventType::wake: wake(event.index(), now); break;
        }
        if (++times_.events % events_between_checks == 0) progress_(executed_);
    }
    progress_(executed_);
    times_.finished = executed_ == static_cast<std::uint64_t>(actions_) * programs_.passes;
    for (const Unit& unit : units_) {
        times_.unit_end.push_back(unit.free);
        times_.unit_busy.push_back(unit.busy);
    }
    if (record_) times_.arrival = std::move(arrival_);
    return std::move(times_);
}

// ---- processors ----------------------------------------------------------------------------------------------------

void Simulation::resume(std::uint32_t unit, double when) {
    if (programs_.tracks == 1)
        resumed_.push_back(unit);
    else
        queue_.push({when, EventType::wake, unit, 0});
}

// With one track: executes a unit as far as the messages that are known let it. Its times may be ahead of the queue.
void Simulation::run_ahead(std::uint32_t unit) {
    Position& position = positions_[unit];
    while (position.pass < programs_.passes) {
        const double start = ready_time(unit, position, never);
        if (start == never) return;
        execute(unit, position, start);
    }
}

// With several tracks: executes the next action of the last track, or of the oldest pass that can continue.
void Simulation::wake(std::uint32_t number, double now) {
    Unit& unit = units_[number];
    if (now < unit.free) return;  // a later event wakes it
    Position* const tracks = &positions_[number * programs_.tracks];
    double soonest = never;
    const auto can_run = [&](std::uint32_t track) {
        if (tracks[track].pass >= programs_.passes) return false;
        const double ready = ready_time(number, tracks[track], now);
        soonest = std::min(soonest, ready);
        return ready <= now;
    };
    std::uint32_t chosen = unit.current;
    if (!can_run(chosen)) {
        chosen = programs_.tracks;
        for (std::uint32_t track = 0; track < programs_.tracks; ++track)
            if (track != unit.current && (chosen == programs_.tracks || tracks[track].pass < tracks[chosen].pass) &&
                can_run(track))
                chosen = track;
        if (chosen == programs_.tracks) {
            if (soonest != never) queue_.push({soonest, EventType::wake, number, 0});
            return;
        }
    }
    unit.current = chosen;
    execute(number, tracks[chosen], now);
    queue_.push({unit.free, EventType::wake, number, 0});
}

// Returns the time from which the next action can run, or never if that is not known yet.
double Simulation::ready_time(std::uint32_t number, const Position& position, double now) {
    const std::uint32_t action = position.action;
    Unit& unit = units_[number];
    double ready = unit.free;
    if (programs_.sender[action] >= 0) ready = std::max(ready, arrival_[at(position.pass, action)]);
    if (!has_room_ || ready == never) return ready;
    for (std::uint32_t index = first_reader_[action]; index < first_reader_[action + 1]; ++index)
        ready = std::max(ready, room_time(position.pass, readers_[index]));
    if (ready == never || ready > now) unit.awaits_room = true;
    return ready;
}

// Returns the time at which the channel of a message has room for it.
double Simulation::room_time(std::uint32_t pass, std::uint32_t reader) const {
    const std::int64_t earlier = pass - programs_.room_passes[reader] * programs_.tracks;
    if (earlier < 0) return 0;
    const auto before = static_cast<std::uint32_t>(programs_.room[reader]);
    const Position& position = positions_[unit_of_[before] * programs_.tracks + earlier % programs_.tracks];
    const bool was_read = position.pass > earlier || (position.pass == earlier && position.action > before);
    return was_read ? read_[at(static_cast<std::uint32_t>(earlier), before)] : never;
}

void Simulation::execute(std::uint32_t number, Position& position, double start) {
    const auto [pass, action, posted] = position;
    Unit& unit = units_[number];
    const double busy = cost(programs_.busy_s, pass, action), end = start + busy;
    const std::size_t here = at(pass, action);
    unit.free = end;
    unit.busy += busy;
    ++executed_;
    if (record_) {
        times_.start[here] = start;
        times_.end[here] = end;
        if (pass == 0) set_level(unit, action);
    }
    if (action + 1 < end_of(number)) {
        ++position.action;
    } else {
        position = {pass + programs_.tracks, static_cast<std::uint32_t>(programs_.first[number]), 0};
    }
    if (const std::int64_t sender = programs_.sender[action]; sender >= 0) {
        if (!record_) arrival_[here] = never;  // for a later pass
        if (has_rendezvous_) posted_[here] = never;
        if (has_room_) {
            read_[here] = end;
            Unit& waiting = units_[unit_of_[sender]];
            if (waiting.awaits_room) {
                waiting.awaits_room = false;
                resume(unit_of_[sender], end);
            }
        }
    }
    if (programs_.sends[action]) {
        if (in_order_) {
            handed_[here] = end;
            try_to_leave(pass, action);
        } else {
            leave(pass, action, end);
        }
    }
    if (has_rendezvous_) post(number, position, end);
}

// Levels are those of schedule/network.py: the sends of a step precede what it receives.
void Simulation::set_level(Unit& unit, std::uint32_t action) {
    const auto enter = [&](std::int32_t step) {
        if (step <= unit.step) return;
        unit.step = step;
        unit.level_before = unit.level;
        ++unit.level;
    };
    enter(programs_.step[action]);
    if (programs_.sender[action] >= 0) unit.level = std::max(unit.level, message_level_[action]);
    times_.level[action] = unit.level;
    enter(programs_.sent_step[action]);
    for (std::uint32_t index = first_reader_[action]; index < first_reader_[action + 1]; ++index)
        message_level_[readers_[index]] = unit.level_before + 1;
}

}  // namespace unisono
