#include "flows.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

namespace unisono {

Flows::Flows(const SharedLinks& links) : links_given_(links), links_(links.bandwidth.size()) {
    for (std::size_t link = 0; link < links_.size(); ++link) links_[link].bandwidth = links.bandwidth[link];
}

std::uint32_t Flows::start(std::int64_t route, double bytes, double now, std::uint32_t action, std::uint32_t pass) {
    std::uint32_t number;
    if (free_.empty()) {
        number = static_cast<std::uint32_t>(flows_.size());
        flows_.emplace_back();
        positions_.resize(positions_.size() + links_given_.hops);
    } else {
        number = free_.back();
        free_.pop_back();
    }
    Flow& flow = flows_[number];
    flow = Flow{bytes, 0, now, never, route, action, pass, flow.version + 1, 0, 0, true, false};
    const auto route_links = route_of(flow);
    for (const std::int32_t link : route_links)
        if (link >= 0) flow.most = std::min(flow.most, links_[link].bandwidth);
    for (std::uint32_t hop = 0; hop < route_links.size(); ++hop) {
        if (route_links[hop] < 0) continue;
        Link& link = links_[route_links[hop]];
        positions_[std::size_t{number} * links_given_.hops + hop] = static_cast<std::uint32_t>(link.hops.size());
        link.hops.push_back({number, hop});
        link.demand += flow.most;
        touch(static_cast<std::uint32_t>(route_links[hop]));
    }
    fresh_.push_back(number);
    return number;
}

void Flows::end(std::uint32_t number) {
    Flow& flow = flows_[number];
    const auto route_links = route_of(flow);
    for (std::uint32_t hop = 0; hop < route_links.size(); ++hop) {
        if (route_links[hop] < 0) continue;
        Link& link = links_[route_links[hop]];
        touch(static_cast<std::uint32_t>(route_links[hop]));
        const std::uint32_t at = positions_[std::size_t{number} * links_given_.hops + hop];
        const Hop moved = link.hops.back();
        link.hops[at] = moved;
        positions_[std::size_t{moved.flow} * links_given_.hops + moved.number] = at;
        link.hops.pop_back();
        link.demand = link.hops.empty() ? 0 : link.demand - flow.most;
        link.load = link.hops.empty() ? 0 : link.load - flow.rate;
    }
    flow.active = false;
    ++flow.version;
    free_.push_back(number);
}

// Notes that the flows of a link have changed, if that can matter to others.
void Flows::touch(std::uint32_t link) {
    if (links_[link].fills(links_[link].load)) dirty_.push_back(link);
}

void Flows::add_link(std::uint32_t number) {
    Link& link = links_[number];
    if (link.mark == mark_) return;
    link.mark = mark_;
    part_links_.push_back(number);
}

void Flows::add_flow(std::uint32_t number) {
    Flow& flow = flows_[number];
    if (flow.mark == mark_) return;
    flow.mark = mark_;
    part_flows_.push_back(number);
}

// Adds the flows of the links of the part, and the full links of its flows, until there are none left to add.
void Flows::collect() {
    while (next_link_ < part_links_.size() || next_flow_ < part_flows_.size()) {
        if (next_link_ < part_links_.size()) {
            for (const Hop& hop : links_[part_links_[next_link_++]].hops) add_flow(hop.flow);
        } else {
            for (const std::int32_t link : route_of(flows_[part_flows_[next_flow_++]]))
                if (link >= 0 && links_[link].fills(links_[link].load)) add_link(static_cast<std::uint32_t>(link));
        }
    }
}

void Flows::fix(Flow& flow, double rate) {
    flow.fixed = true;
    flow.new_rate = rate;
    for (const std::int32_t index : route_of(flow)) {
        if (index < 0 || links_[index].mark != mark_) continue;
        Link& link = links_[index];
        link.left -= rate;
        // The share of a link for each remaining flow grows, so its entry in the heap comes too soon and is corrected
        // then; only where rounding makes it smaller, a second entry is needed.
        if (--link.unfixed == 0 || link.left > link.share * link.unfixed * (1 + 1e-12)) continue;
        const double share = std::max(link.left, 0.0) / link.unfixed;
        if (share >= link.share) continue;
        link.share = share;
        shares_.emplace_back(share, static_cast<std::uint32_t>(index));
        std::push_heap(shares_.begin(), shares_.end(), std::greater<>{});
    }
}

// Gives every flow of the part its rate: the link with the smallest share for each of its flows comes first.
void Flows::share() {
    shares_.clear();
    for (const std::uint32_t number : part_links_) {
        Link& link = links_[number];
        link.left = link.bandwidth;
        link.unfixed = static_cast<std::uint32_t>(link.hops.size());
        if (link.unfixed == 0) continue;
        link.share = link.left / link.unfixed;
        shares_.emplace_back(link.share, number);
    }
    std::make_heap(shares_.begin(), shares_.end(), std::greater<>{});
    const auto is_slower = [&](std::uint32_t a, std::uint32_t b) { return flows_[a].most < flows_[b].most; };
    if (!std::is_sorted(part_flows_.begin(), part_flows_.end(), is_slower))
        std::sort(part_flows_.begin(), part_flows_.end(), is_slower);
    for (const std::uint32_t flow : part_flows_) flows_[flow].fixed = false;
    std::size_t slowest = 0;
    while (slowest < part_flows_.size()) {
        if (flows_[part_flows_[slowest]].fixed) {
            ++slowest;
            continue;
        }
        while (!shares_.empty()) {  // entries that are out of date
            const auto [share, number] = shares_.front();
            Link& link = links_[number];
            const double now = link.unfixed > 0 ? std::max(link.left, 0.0) / link.unfixed : never;
            if (now == share) break;
            std::pop_heap(shares_.begin(), shares_.end(), std::greater<>{});
            shares_.pop_back();
            if (link.unfixed == 0 || share != link.share) continue;
            link.share = now;
            shares_.emplace_back(now, number);
            std::push_heap(shares_.begin(), shares_.end(), std::greater<>{});
        }
        Flow& first = flows_[part_flows_[slowest]];
        if (shares_.empty() || first.most <= shares_.front().first) {
            fix(first, first.most);
            continue;
        }
        const auto [rate, number] = shares_.front();
        for (const Hop& hop : links_[number].hops)
            if (Flow& flow = flows_[hop.flow]; !flow.fixed) fix(flow, rate);
    }
}

// Adds to the part the links that would become full; returns whether there are any.
bool Flows::fill_further_links() {
    ++load_mark_;
    loaded_.clear();
    for (const std::uint32_t number : part_flows_) {
        const Flow& flow = flows_[number];
        if (flow.new_rate == flow.rate) continue;
        for (const std::int32_t index : route_of(flow)) {
            if (index < 0 || links_[index].mark == mark_) continue;
            Link& link = links_[index];
            if (link.load_mark != load_mark_) {
                link.load_mark = load_mark_;
                link.new_load = link.load;
                loaded_.push_back(static_cast<std::uint32_t>(index));
            }
            link.new_load += flow.new_rate - flow.rate;
        }
    }
    const std::size_t before = part_links_.size();
    for (const std::uint32_t link : loaded_)
        if (links_[link].fills(links_[link].new_load)) add_link(link);
    return part_links_.size() > before;
}

void Flows::set_loads() {
    for (const std::uint32_t number : part_links_) links_[number].load = links_[number].bandwidth - links_[number].left;
    for (const std::uint32_t number : loaded_) links_[number].load = links_[number].new_load;
}

const std::vector<Flows::Change>& Flows::update(double now) {
    changes_.clear();
    ++mark_;
    part_links_.clear();
    part_flows_.clear();
    next_link_ = next_flow_ = 0;
    for (const std::uint32_t link : dirty_) add_link(link);
    for (const std::uint32_t flow : fresh_)
        if (flows_[flow].active) add_flow(flow);
    do {
        collect();
        share();
    } while (fill_further_links());
    set_loads();
    for (const std::uint32_t number : part_flows_) {
        Flow& flow = flows_[number];
        if (flow.new_rate == flow.rate) continue;
        flow.left = std::max(0.0, flow.left - flow.rate * (now - flow.since));
        flow.since = now;
        flow.rate = flow.new_rate;
        ++flow.version;
        changes_.push_back({number, flow.version, now + std::nearbyint(flow.left / flow.rate / quantum_s) * quantum_s});
    }
    dirty_.clear();
    fresh_.clear();
    return changes_;
}

}  // namespace unisono
