#include "flows.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

namespace unisono {

Flows::Flows(const SharedLinks& links)
    : links_given_(links), links_(links.bandwidth.size()), members_(links_.size()), new_load_(links_.size()) {
    for (std::size_t link = 0; link < links_.size(); ++link) links_[link].bandwidth = links.bandwidth[link];
}

std::uint32_t Flows::start(std::int64_t route, double bytes, double now, std::uint32_t action, std::uint32_t pass) {
    std::uint32_t number;
    if (free_.empty()) {
        number = static_cast<std::uint32_t>(flows_.size());
        flows_.emplace_back();
        hops_.resize(hops_.size() + links_given_.hops);
    } else {
        number = free_.back();
        free_.pop_back();
    }
    Flow& flow = flows_[number];
    flow = Flow{bytes, 0, now, never, 0, action, pass, flow.version + 1, 0, 0, true, false};
    Hop* const hops = &hops_[std::size_t{number} * links_given_.hops];
    const std::size_t first = static_cast<std::size_t>(route) * links_given_.hops;
    for (std::size_t entry = first; entry < first + links_given_.hops; ++entry) {
        const std::int32_t link = links_given_.routes[entry];
        if (link < 0) continue;
        flow.most = std::min(flow.most, links_[link].bandwidth);
        const std::int32_t weight = links_given_.weights.empty() ? 1 : links_given_.weights[entry];
        hops[flow.hops++] = {static_cast<std::uint32_t>(link), 0, static_cast<std::uint32_t>(weight)};
    }
    for (std::uint32_t hop = 0; hop < flow.hops; ++hop) {
        Link& link = links_[hops[hop].link];
        auto& members = members_[hops[hop].link];
        hops[hop].position = static_cast<std::uint32_t>(members.size());
        members.push_back({number, hop});
        link.demand += flow.most * hops[hop].weight;
        link.flows += hops[hop].weight;
        touch(hops[hop].link);
    }
    fresh_.push_back(number);
    return number;
}

void Flows::end(std::uint32_t number) {
    Flow& flow = flows_[number];
    for (const Hop& hop : hops_of(number)) {
        Link& link = links_[hop.link];
        touch(hop.link);
        auto& members = members_[hop.link];
        const Member moved = members.back();
        members[hop.position] = moved;
        hops_[std::size_t{moved.flow} * links_given_.hops + moved.hop].position = hop.position;
        members.pop_back();
        link.demand = members.empty() ? 0 : link.demand - flow.most * hop.weight;
        link.load = members.empty() ? 0 : link.load - flow.rate * hop.weight;
        link.flows -= hop.weight;
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
            for (const Member& member : members_[part_links_[next_link_++]]) add_flow(member.flow);
        } else {
            for (const Hop& hop : hops_of(part_flows_[next_flow_++]))
                if (links_[hop.link].fills(links_[hop.link].load)) add_link(hop.link);
        }
    }
}

void Flows::fix(std::uint32_t number, double rate) {
    flows_[number].fixed = true;
    flows_[number].new_rate = rate;
    for (const Hop& hop : hops_of(number)) {
        Link& link = links_[hop.link];
        if (link.mark != mark_) continue;
        link.left -= rate * hop.weight;
        // The share of a link for each remaining flow grows, so its entry in the heap comes too soon and is corrected
        // then; only where rounding makes it smaller, a second entry is needed.
        if ((link.unfixed -= hop.weight) == 0 || link.left > link.share * link.unfixed * (1 + 1e-12)) continue;
        const double share = std::max(link.left, 0.0) / link.unfixed;
        if (share >= link.share) continue;
        link.share = share;
        shares_.emplace_back(share, hop.link);
        std::push_heap(shares_.begin(), shares_.end(), std::greater<>{});
    }
}

// Gives every flow of the part its rate: the link with the smallest share for each of its flows comes first.
void Flows::share() {
    shares_.clear();
    for (const std::uint32_t number : part_links_) {
        Link& link = links_[number];
        link.left = link.bandwidth;
        link.unfixed = link.flows;
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
        const std::uint32_t first = part_flows_[slowest];
        if (flows_[first].fixed) {
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
        if (shares_.empty() || flows_[first].most <= shares_.front().first) {
            fix(first, flows_[first].most);
            continue;
        }
        const auto [rate, number] = shares_.front();
        for (const Member& member : members_[number])
            if (!flows_[member.flow].fixed) fix(member.flow, rate);
    }
}

// Adds to the part the links that would become full; returns whether there are any.
bool Flows::fill_further_links() {
    const std::size_t before = part_links_.size();
    ++load_mark_;
    loaded_.clear();
    for (const std::uint32_t number : part_flows_) {
        const Flow& flow = flows_[number];
        if (flow.new_rate == flow.rate) continue;
        for (const Hop& hop : hops_of(number)) {
            Link& link = links_[hop.link];
            if (link.mark == mark_) continue;
            if (link.load_mark != load_mark_) {
                link.load_mark = load_mark_;
                new_load_[hop.link] = link.load;
                loaded_.push_back(hop.link);
            }
            new_load_[hop.link] += (flow.new_rate - flow.rate) * hop.weight;
        }
    }
    for (const std::uint32_t link : loaded_)
        if (links_[link].fills(new_load_[link])) add_link(link);
    return part_links_.size() > before;
}

void Flows::set_loads() {
    for (const std::uint32_t number : part_links_) links_[number].load = links_[number].bandwidth - links_[number].left;
    for (const std::uint32_t number : loaded_) links_[number].load = new_load_[number];
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
