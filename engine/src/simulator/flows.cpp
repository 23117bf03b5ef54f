#include "flows.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

namespace unisono {

Flows::Flows(const SharedLinks& links) : links_given_(links) {
    links_.reserve(links.bandwidth.size());
    for (const double bandwidth : links.bandwidth) links_.push_back({bandwidth, 0, {}, 0, 0, 0, 0});
}

std::uint32_t Flows::start(std::int64_t route, double bytes, double now, std::uint32_t action, std::uint32_t pass) {
    std::uint32_t number;
    if (free_.empty()) {
        number = static_cast<std::uint32_t>(flows_.size());
        flows_.emplace_back();
        new_rate_.push_back(0);
        positions_.resize(positions_.size() + links_given_.hops);
    } else {
        number = free_.back();
        free_.pop_back();
    }
    Flow& flow = flows_[number];
    const std::uint32_t version = flow.version + 1;
    flow = Flow{bytes, 0, now, never, route, action, pass, version, 0, true, false};
    const auto hops = route_of(route);
    for (const std::int32_t link : hops)
        if (link >= 0) flow.most = std::min(flow.most, links_[link].bandwidth);
    for (std::size_t hop = 0; hop < hops.size(); ++hop) {
        if (hops[hop] < 0) continue;
        Link& link = links_[hops[hop]];
        positions_[number * hops.size() + hop] = static_cast<std::uint32_t>(link.hops.size());
        link.hops.push_back(static_cast<std::uint32_t>(number * hops.size() + hop));
        link.demand += flow.most * weight_of(route, hop);
        link.flows += weight_of(route, hop);
        touch(static_cast<std::uint32_t>(hops[hop]));
    }
    fresh_.push_back(number);
    return number;
}

void Flows::end(std::uint32_t number) {
    Flow& flow = flows_[number];
    const auto hops = route_of(flow.route);
    for (std::size_t hop = 0; hop < hops.size(); ++hop) {
        if (hops[hop] < 0) continue;
        Link& link = links_[hops[hop]];
        touch(static_cast<std::uint32_t>(hops[hop]));
        const std::uint32_t at = positions_[number * hops.size() + hop], moved = link.hops.back();
        link.hops[at] = moved;
        positions_[moved] = at;
        link.hops.pop_back();
        link.demand = link.hops.empty() ? 0 : link.demand - flow.most * weight_of(flow.route, hop);
        link.flows -= weight_of(flow.route, hop);
    }
    flow.active = false;
    ++flow.version;
    free_.push_back(number);
}

// Notes that the flows of a link have changed, if that can matter to others: if it is shared before or after.
void Flows::touch(std::uint32_t link) {
    if (links_[link].shared()) dirty_.push_back(link);
}

// Finds the flows and links that share with those that have changed.
void Flows::collect() {
    ++mark_;
    part_links_.clear();
    part_flows_.clear();
    const auto add_link = [&](std::uint32_t number) {
        Link& link = links_[number];
        if (link.mark == mark_) return;
        link.mark = mark_;
        part_links_.push_back(number);
    };
    const auto add_flow = [&](std::uint32_t number) {
        Flow& flow = flows_[number];
        if (flow.mark == mark_ || !flow.active) return;
        flow.mark = mark_;
        flow.fixed = false;
        part_flows_.push_back(number);
    };
    for (const std::uint32_t link : dirty_) add_link(link);
    for (const std::uint32_t flow : fresh_) add_flow(flow);
    std::size_t next_link = 0, next_flow = 0;
    while (next_link < part_links_.size() || next_flow < part_flows_.size()) {
        if (next_link < part_links_.size()) {
            for (const std::uint32_t entry : links_[part_links_[next_link++]].hops) add_flow(entry / links_given_.hops);
        } else {
            for (const std::int32_t link : route_of(flows_[part_flows_[next_flow++]].route))
                if (link >= 0 && links_[link].shared()) add_link(static_cast<std::uint32_t>(link));
        }
    }
}

void Flows::fix(std::uint32_t number, double rate) {
    Flow& flow = flows_[number];
    flow.fixed = true;
    new_rate_[number] = rate;
    const auto hops = route_of(flow.route);
    for (std::size_t hop = 0; hop < hops.size(); ++hop) {
        const std::int32_t index = hops[hop];
        if (index < 0 || links_[index].mark != mark_) continue;
        Link& link = links_[index];
        const std::uint32_t weight = weight_of(flow.route, hop);
        link.left -= rate * weight;
        if ((link.unfixed -= weight) == 0) continue;
        shares_.emplace_back(std::max(link.left, 0.0) / link.unfixed, static_cast<std::uint32_t>(index));
        std::push_heap(shares_.begin(), shares_.end(), std::greater<>{});
    }
}

// Gives every collected flow its rate: the link with the smallest share for each of its flows comes first.
void Flows::share() {
    shares_.clear();
    for (const std::uint32_t number : part_links_) {
        Link& link = links_[number];
        link.left = link.bandwidth;
        link.unfixed = link.flows;
        if (link.unfixed > 0) shares_.emplace_back(link.left / link.unfixed, number);
    }
    std::make_heap(shares_.begin(), shares_.end(), std::greater<>{});
    std::sort(part_flows_.begin(), part_flows_.end(), [&](std::uint32_t a, std::uint32_t b) {
        return flows_[a].most != flows_[b].most ? flows_[a].most < flows_[b].most : a < b;
    });
    std::size_t slowest = 0;
    while (slowest < part_flows_.size()) {
        if (flows_[part_flows_[slowest]].fixed) {
            ++slowest;
            continue;
        }
        while (!shares_.empty()) {  // entries that are out of date
            const Link& link = links_[shares_.front().second];
            if (link.unfixed > 0 && std::max(link.left, 0.0) / link.unfixed == shares_.front().first) break;
            std::pop_heap(shares_.begin(), shares_.end(), std::greater<>{});
            shares_.pop_back();
        }
        const std::uint32_t first = part_flows_[slowest];
        if (shares_.empty() || flows_[first].most <= shares_.front().first) {
            fix(first, flows_[first].most);
            continue;
        }
        const auto [rate, number] = shares_.front();
        for (const std::uint32_t entry : links_[number].hops)
            if (const std::uint32_t flow = entry / links_given_.hops; !flows_[flow].fixed) fix(flow, rate);
    }
}

const std::vector<Flows::Change>& Flows::update(double now) {
    changes_.clear();
    collect();
    share();
    for (const std::uint32_t number : part_flows_) {
        Flow& flow = flows_[number];
        if (new_rate_[number] == flow.rate) continue;
        flow.left = std::max(0.0, flow.left - flow.rate * (now - flow.since));
        flow.since = now;
        flow.rate = new_rate_[number];
        ++flow.version;
        changes_.push_back({number, flow.version, now + std::nearbyint(flow.left / flow.rate / quantum_s) * quantum_s});
    }
    dirty_.clear();
    fresh_.clear();
    return changes_;
}

}  // namespace unisono
