// Executes compiled programs: it announces the calls and runs their passes, one after another or several at a time.
#pragma once

#include <cstdint>
#include <vector>

#include "unisono/copy_strategy.hpp"
#include "unisono/endpoint.hpp"
#include "unisono/event_log.hpp"
#include "unisono/plan.hpp"
#include "unisono/track.hpp"

namespace unisono {

class Executor {
  public:
    explicit Executor(Endpoint& endpoint);
    Executor(const Executor&) = delete;  // the tracks refer to it
    Executor& operator=(const Executor&) = delete;
    Endpoint& endpoint() { return endpoint_; }

    // Runs all passes of the plan. Every rank makes the same calls in the same order.
    void run(Plan& plan, const void* input, void* output, const Deadline& deadline);

  private:
    void prepare(Plan& plan);
    void perform(const Plan& plan, const Call& call);
    void run_several_at_a_time(const Plan& plan, const Call& call);
    void await_any(const Plan& plan, const Call& call, Track& oldest);
    void await_entry(const Plan& plan, const Deadline& deadline);
    std::size_t tracks_of(const Plan& plan) const;

    Endpoint& endpoint_;
    CopyStrategy copy_strategy_;
    CallEventWriter events_;
    std::vector<Track> tracks_;
};

}  // namespace unisono
