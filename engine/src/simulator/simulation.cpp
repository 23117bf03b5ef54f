#include "simulation.hpp"

#include <algorithm>

namespace unisono {

namespace {

// Whether every action that sends keeps its processor busy. Then no two messages of a unit are handed over at once.
bool all_sends_take_time(const SimulatedPrograms& programs) {
    for (std::size_t action = 0; action < programs.sends.size(); ++action)
        if (programs.sends[action] && !(programs.busy_s.whole[action] > 0 && programs.busy_s.last[action] > 0))
            return false;
    return true;
}

bool no_action_takes_time(const SimulatedPrograms& programs) {
    const auto is_zero = [](double busy) { return busy == 0; };
    return std::all_of(programs.busy_s.whole.begin(), programs.busy_s.whole.end(), is_zero) &&
           std::all_of(programs.busy_s.last.begin(), programs.busy_s.last.end(), is_zero);
}

std::uint32_t kept_rows(const SimulatedPrograms& programs, bool record) {
    if (record || programs.room.empty()) return programs.passes;
    // A channel of bounded depth lets a sender get only a bounded number of passes ahead of its receiver.
    std::int64_t ahead = 0;
    for (const std::int64_t passes : programs.room_passes) ahead = std::max(ahead, passes);
    return static_cast<std::uint32_t>(
        std::min<std::uint64_t>(programs.passes, static_cast<std::uint64_t>(ahead + 2) * programs.tracks));
}

}  // namespace

Simulation::Simulation(const SimulatedPrograms& programs, const SharedLinks& links, bool record,
                       const Progress& progress)
    : programs_(programs), links_(links), progress_(progress), actions_(programs), actions_count_(actions_.size()),
      units_count_(programs.first.size() - 1), record_(record), has_room_(!programs.room.empty()),
      shares_(links.hops > 0), has_rendezvous_(actions_.has_rendezvous()),
      runs_ahead_(programs.tracks == 1 || no_action_takes_time(programs)),
      in_order_(has_rendezvous_ || shares_ || (programs.tracks > 1 && !all_sends_take_time(programs))),
      rows_(kept_rows(programs, record)) {
    units_.resize(units_count_);
    for (std::size_t unit = 0; unit < units_count_; ++unit)
        for (std::uint32_t track = 0; track < programs.tracks; ++track) {
            const auto first = static_cast<std::uint32_t>(programs.first[unit]);
            lanes_.push_back({first == end_of(unit) ? programs.passes : track, first, first});
        }
    out_ports_.assign(units_count_ * programs.ports, 0);
    in_ports_.assign(units_count_ * programs.ports, 0);
    receipts_.resize(std::size_t{rows_} * actions_count_);
    if (has_rendezvous_) rendezvous_.resize(std::size_t{rows_} * actions_count_);
    if (shares_) {
        flows_ = std::make_unique<Flows>(links_);
        departures_.resize(units_count_);
        flows_left_.assign(std::size_t{rows_} * actions_count_, 0);
    }
    if (record_) {
        for (auto* each : {&times_.start, &times_.end, &times_.leave, &times_.arrival})
            each->assign(std::size_t{rows_} * actions_count_, never);
        times_.level.assign(actions_count_, 0);
        message_level_.assign(actions_count_, 0);
    }
}

SimulatedTimes Simulation::run() {
    for (std::uint32_t unit = 0; unit < units_count_; ++unit)
        for (std::uint32_t track = 0; track < programs_.tracks; ++track) post(unit, lanes_[lane_of(unit, track)], 0);
    for (std::uint32_t lane = 0; lane < lanes_.size(); ++lane) resume(lane, 0);
    double now = 0;
    for (;;) {
        while (!resumed_.empty()) {
            const std::uint32_t lane = resumed_.back();
            resumed_.pop_back();
            run_ahead(lane);
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
        ++times_.events;
        count_work(1);
    }
    progress_(executed_);
    times_.finished = executed_ == static_cast<std::uint64_t>(actions_count_) * programs_.passes;
    for (const Unit& unit : units_) {
        times_.unit_end.push_back(unit.free);
        times_.unit_busy.push_back(unit.busy);
    }
    return std::move(times_);
}

// ---- processors ----------------------------------------------------------------------------------------------------

void Simulation::resume(std::uint32_t lane, double when) {
    if (runs_ahead_)
        resumed_.push_back(lane);
    else
        wake_at(lane / programs_.tracks, when);
}

// Executes a lane as far as the messages that are known let it. Its times may be ahead of the queue.
void Simulation::run_ahead(std::uint32_t number) {
    Lane& lane = lanes_[number];
    while (lane.pass < programs_.passes) {
        const double start = ready_time(lane, lane.free);
        if (start == never) return;
        execute(number / programs_.tracks, lane, start);
    }
}

// Where tracks wait for each other: wakes a unit at a time, or before, when it finds out that it has to wait.
void Simulation::wake_at(std::uint32_t number, double when) {
    Unit& unit = units_[number];
    if (when >= unit.woken) return;
    unit.woken = when;
    queue_.push({when, EventType::wake, number, 0});
}

// Where tracks wait for each other: executes the next action of the last track, or of the oldest pass that can
// continue.
void Simulation::wake(std::uint32_t number, double now) {
    Unit& unit = units_[number];
    if (now != unit.woken) return;  // there was an earlier event
    unit.woken = never;
    if (now < unit.free) {
        wake_at(number, unit.free);
        return;
    }
    Lane* const tracks = &lanes_[number * programs_.tracks];
    double soonest = never;
    const auto can_run = [&](std::uint32_t track) {
        if (tracks[track].pass >= programs_.passes) return false;
        const double ready = ready_time(tracks[track], unit.free);
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
            if (soonest != never) wake_at(number, soonest);
            return;
        }
    }
    unit.current = chosen;
    execute(number, tracks[chosen], now);
    // The last track comes first, so if it is known to be ready when the processor is free, nothing can change that. An
    // action that takes no time has to wait for its turn among what other units do at the same time.
    Lane& next = tracks[chosen];
    while (next.pass < programs_.passes && actions_(next.pass, next.action).busy_s > 0 &&
           ready_time(next, unit.free) <= unit.free)
        execute(number, next, unit.free);
    wake_at(number, unit.free);
}

// Returns the time from which the next action can run, or never if that is not known yet.
double Simulation::ready_time(Lane& lane, double free) {
    const PackedAction& action = actions_(lane.pass, lane.action);
    double ready = free;
    if (action.sender != no_action) ready = std::max(ready, receipts_[at(lane.pass, lane.action)].arrival);
    if (ready == never && action.readers_count == 1) actions_.prefetch(lane.pass, action.reader);
    if (!has_room_ || ready == never) return ready;
    for (const std::uint32_t reader : actions_.readers(action))
        ready = std::max(ready, room_time(lane.pass, actions_(lane.pass, reader)));
    lane.awaits_room = ready == never;
    return ready;
}

// A message of a lane that awaits room is being read. If the lane awaits room in another channel too, or instead, it
// goes on awaiting it: that channel may have room before this message has been read.
void Simulation::offer_room(std::uint32_t number) {
    if (runs_ahead_) {
        lanes_[number].awaits_room = false;
        resume(number, 0);
        return;
    }
    const double ready = ready_time(lanes_[number], units_[number / programs_.tracks].free);
    if (ready != never) resume(number, ready);
}

// Returns the time at which the channel of a message has room for it.
double Simulation::room_time(std::uint32_t pass, const PackedAction& reader) const {
    const std::int64_t earlier = pass - std::int64_t{reader.room_passes} * programs_.tracks;
    if (earlier < 0) return 0;
    const auto earlier_pass = static_cast<std::uint32_t>(earlier);
    const std::uint32_t before = reader.room;
    const Lane& lane = lanes_[lane_of(reader.unit, earlier_pass)];
    const bool was_read = lane.pass > earlier_pass || (lane.pass == earlier_pass && lane.action > before);
    return was_read ? receipts_[at(earlier_pass, before)].read : never;
}

void Simulation::execute(std::uint32_t number, Lane& lane, double start) {
    const std::uint32_t pass = lane.pass, action = lane.action;
    const PackedAction& executed = actions_(pass, action);
    Unit& unit = units_[number];
    const double end = start + executed.busy_s;
    const std::size_t here = at(pass, action);
    lane.free = end;
    unit.free = std::max(unit.free, end);
    unit.busy += executed.busy_s;
    ++executed_;
    count_work(1);
    if (record_) {
        times_.start[here] = start;
        times_.end[here] = end;
        if (pass == 0) set_level(unit, action);
    }
    if (action + 1 < end_of(number)) {
        ++lane.action;
        actions_.prefetch(pass, lane.action + 1);
        __builtin_prefetch(&receipts_[here] + 2);
    } else {
        lane.pass += programs_.tracks;
        lane.action = static_cast<std::uint32_t>(programs_.first[number]);
        lane.posted = 0;
    }
    if (executed.sender != no_action) {
        receipts_[here] = {never, end};  // the former for a later pass
        if (has_rendezvous_) rendezvous_[here].posted = never;
        if (has_room_) {
            const std::uint32_t sender = lane_of(actions_(pass, executed.sender).unit, pass);
            if (lanes_[sender].awaits_room) offer_room(sender);
        }
    }
    if (executed.sends) {
        if (in_order_)
            try_to_leave(pass, action, end);
        else
            leave(pass, action, end);
    }
    if (has_rendezvous_) post(number, lane, end);
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
    for (const std::uint32_t reader : actions_.readers(actions_(0, action)))
        message_level_[reader] = unit.level_before + 1;
}

}  // namespace unisono
