// Flows that share links: each gets its max-min fair part of the bandwidth.
//
// *Flow*: the bytes of a message on their way. Max-min fair: no flow can get more without taking from one that has no
// more than it. When flows start or end, only the flows that share links with them, directly or through others, get new
// rates. A link that could carry all its flows at their greatest rates is not shared: it never limits any of them.
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
    Flows(const SharedLinks& links);

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
        bool active = false, fixed = false;
    };
    const Flow& operator[](std::uint32_t flow) const { return flows_[flow]; }

  private:
    struct Link {
        double bandwidth, demand = 0;     // demand: the sum of the greatest rates of its flows
        std::vector<std::uint32_t> hops;  // entries of `positions_`
        double left = 0;                  // while rates are computed
        std::uint32_t unfixed = 0, mark = 0;
        std::uint32_t flows = 0;  // on it; a flow counts as often as its weight says
        bool shared() const { return demand > bandwidth * (1 + 1e-12); }
    };

    std::span<const std::int32_t> route_of(std::int64_t route) const {
        return links_given_.routes.subspan(route * links_given_.hops, links_given_.hops);
    }
    std::uint32_t weight_of(std::int64_t route, std::size_t hop) const {
        return links_given_.weights.empty() ? 1 : links_given_.weights[route * links_given_.hops + hop];
    }
    void touch(std::uint32_t link);
    void collect();
    void share();
    void fix(std::uint32_t flow, double rate);

    const SharedLinks& links_given_;
    std::vector<Link> links_;
    std::vector<Flow> flows_;
    std::vector<std::uint32_t> positions_;  // of hop h of flow f in the list of its link: entry f * hops + h
    std::vector<std::uint32_t> free_;
    std::vector<std::uint32_t> dirty_, fresh_;            // links whose flows have changed; flows that have started
    std::vector<std::uint32_t> part_links_, part_flows_;  // that get new rates
    std::vector<double> new_rate_;
    std::vector<std::pair<double, std::uint32_t>> shares_;  // a heap: fair share of a link
    std::vector<Change> changes_;
    std::uint32_t mark_ = 0;
};

}  // namespace unisono
