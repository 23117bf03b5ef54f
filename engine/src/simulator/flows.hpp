// Flows that share links: each gets its max-min fair part of the bandwidth.
//
// *Flow*: the bytes of a message on their way. Max-min fair: no flow can get more without taking from one that has no
// more than it. *Shared* link: one that could not carry all its flows at their greatest rates; others never limit a
// flow. *Full* link: a shared one whose flows use all of its bandwidth.
//
//
// When flows start or end, other rates change only where flows are connected through full links. So these flows get new
// rates first, as if there were no other links. A link that thereby becomes full is added, with its flows, and the
// rates are computed again. The result is that of a computation for all flows, to the bit, because a link that is not
// full takes no part in that computation.
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
    std::size_t visited() const { return part_flows_.size(); }  // flows, by the last update

    struct alignas(64) Flow {
        double left = 0, rate = 0, since = 0, most = 0;  // bytes, bytes per second, time of `left`, the greatest rate
        double new_rate = 0;                             // while rates are computed
        std::uint32_t action = 0, pass = 0, version = 0;
        std::uint32_t hops = 0;  // the number of its links
        std::uint32_t mark = 0;  // of the last update that visited it
        bool active = false, fixed = false;
    };
    const Flow& operator[](std::uint32_t flow) const { return flows_[flow]; }

  private:
    struct Hop {  // of a flow: a link, the index in the list of that link, and how often the flow counts there
        std::uint32_t link, position, weight;
    };
    struct Member {  // of a link: a flow, and the number of the hop
        std::uint32_t flow, hop;
    };
    struct alignas(64) Link {
        double bandwidth = 0, demand = 0, load = 0;  // demand, load: the sums of the greatest rates, and of the rates
        double left = 0, share = 0;                  // while rates are computed; share: the last one in the heap
        std::uint32_t flows = 0;                     // on it; a flow counts as often as its weight says
        std::uint32_t unfixed = 0, mark = 0, load_mark = 0;
        bool shared() const { return demand > bandwidth * (1 + 1e-12); }
        bool fills(double load_then) const { return shared() && load_then >= bandwidth * (1 - 1e-9); }
    };

    std::span<Hop> hops_of(std::uint32_t flow) {
        return {&hops_[std::size_t{flow} * links_given_.hops], flows_[flow].hops};
    }
    void touch(std::uint32_t link);
    void add_link(std::uint32_t link);
    void add_flow(std::uint32_t flow);
    void collect();
    void share();
    void fix(std::uint32_t flow, double rate);
    bool fill_further_links();
    void set_loads();

    const SharedLinks& links_given_;
    std::vector<Link> links_;
    std::vector<std::vector<Member>> members_;  // of each link
    std::vector<Flow> flows_;
    std::vector<Hop> hops_;  // room for the longest route for each flow
    std::vector<std::uint32_t> free_;
    std::vector<std::uint32_t> dirty_, fresh_;              // links whose flows have changed; flows that have started
    std::vector<std::uint32_t> part_links_, part_flows_;    // the part for which rates are computed
    std::size_t next_link_ = 0, next_flow_ = 0;             // of the part: those whose neighbours are not collected yet
    std::vector<std::uint32_t> loaded_;                     // links outside the part whose load changes
    std::vector<double> new_load_;                          // of each link
    std::vector<std::pair<double, std::uint32_t>> shares_;  // a heap: fair share of a link
    std::vector<Change> changes_;
    std::uint32_t mark_ = 0, load_mark_ = 0;
};

}  // namespace unisono
