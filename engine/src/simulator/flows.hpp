// Flows that share links: each gets its max-min fair part of the bandwidth.
//
// *Flow*: the bytes of a message on their way. Max-min fair: no flow can get more without taking from one that has no
// more than it. *Shared* link: one that could not carry all its flows at their greatest rates; others never limit a flow.
// *Full* link: a shared one whose flows use all of its bandwidth.
//
// When flows start or end, the rates of other flows change only where they are connected through full links. So these
// get new rates first, as if there were no other links. A link that thereby becomes full is added, with its flows, and
// the rates are computed again. What remains has the rates that a computation for all flows would give it, to the bit,
// because a link that is not full takes no part in that computation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "unisono/simulation.hpp"

namespace unisono {

class Flows {
  public:
    explicit Flows(const SharedLinks& links);

    // Starts a flow on a route and returns its number; numbers of ended flows are used again.
    std::uint32_t start(std::int64_t route, double bytes, double now, std::uint32_t action, std::uint32_t pass);
    void end(std::uint32_t flow);
    bool is_dirty() const { return !dirty_.empty() || !fresh_.empty(); }

    struct Change {
        std::uint32_t flow, version;
        double end;  // the time at which it ends if nothing else changes
    };
    // Computes the rates anew where flows have started or ended; returns the flows whose end has changed.
    const std::vector<Change>& update(double now);

    struct Flow {
        double left = 0, rate = 0, since = 0, most = 0;  // bytes, bytes per second, time of `left`, the greatest rate
        std::int64_t route = 0;
        std::uint32_t action = 0, pass = 0, version = 0;
        std::uint32_t mark = 0;  // of the last update that visited it
        double new_rate = 0;
        bool active = false, fixed = false;
    };
    const Flow& operator[](std::uint32_t flow) const { return flows_[flow]; }

  private:
    struct Hop {  // of a flow on its route
        std::uint32_t flow, number;
    };
    struct Link {
        double bandwidth, demand = 0, load = 0;  // the sums of the greatest rates, and of the rates, of its flows
        double left = 0, share = 0;              // while rates are computed; share: the last one in the heap
        std::uint32_t unfixed = 0, mark = 0, load_mark = 0;
        double new_load = 0;
        std::vector<Hop> hops;
        bool shared() const { return demand > bandwidth * (1 + 1e-12); }
        bool fills(double load_then) const { return shared() && load_then >= bandwidth * (1 - 1e-9); }
    };

    std::span<const std::int32_t> route_of(const Flow& flow) const {
        return links_given_.routes.subspan(flow.route * links_given_.hops, links_given_.hops);
    }
    void touch(std::uint32_t link);
    void add_link(std::uint32_t link);
    void add_flow(std::uint32_t flow);
    void collect();
    void share();
    void fix(Flow& flow, double rate);
    bool fill_further_links();
    void set_loads();

    const SharedLinks& links_given_;
    std::vector<Link> links_;
    std::vector<Flow> flows_;
    std::vector<std::uint32_t> positions_;  // of hop h of flow f in the list of its link: entry f * hops + h
    std::vector<std::uint32_t> free_;
    std::vector<std::uint32_t> dirty_, fresh_;            // links whose flows have changed; flows that have started
    std::vector<std::uint32_t> part_links_, part_flows_;  // that get new rates
    std::size_t next_link_ = 0, next_flow_ = 0;           // of the part: those whose neighbours are not collected yet
    std::vector<std::uint32_t> loaded_;                   // links outside the part whose load changes
    std::vector<std::pair<double, std::uint32_t>> shares_;  // a heap: fair share of a link
    std::vector<Change> changes_;
    std::uint32_t mark_ = 0, load_mark_ = 0;
};

}  // namespace unisono
