#include "operator/core/allocation/max_flow.h"

#include <algorithm>
#include <limits>

namespace stoker::control {

std::size_t MaxFlow::add_edge(
    std::size_t from, std::size_t to, std::uint64_t room, std::uint64_t back) {
    const std::size_t edge = edges_.size();
    edges_of_[from].push_back(edge);
    edges_of_[to].push_back(edge + 1);
    edges_.push_back({to, room});
    edges_.push_back({from, back});
    return edge;
}

bool MaxFlow::measure() {
    to_sink_.assign(edges_of_.size(), kFar);
    to_sink_.back() = 0;
    std::vector<std::size_t> queue{edges_of_.size() - 1};
    for (std::size_t at = 0; at < queue.size(); ++at) {
        for (const std::size_t edge : edges_of_[queue[at]]) {
            const std::size_t from = edges_[edge].to;
            if (edges_[edge ^ 1U].room > 0 && to_sink_[from] == kFar) {
                to_sink_[from] = to_sink_[queue[at]] + 1;
                queue.push_back(from);
            }
        }
    }
    return to_sink_.front() != kFar;
}

// The recursion is as deep as the shortest path is long.
std::uint64_t MaxFlow::push(std::size_t from, std::uint64_t most) {
    if (from + 1 == edges_of_.size()) {
        return most;
    }
    std::uint64_t pushed = 0;
    for (std::size_t& at = next_[from]; at < edges_of_[from].size(); ++at) {
        Edge& edge = edges_[edges_of_[from][at]];
        if (edge.room == 0 || to_sink_[edge.to] == kFar ||
            to_sink_[edge.to] + 1 != to_sink_[from]) {
            continue;
        }
        const std::uint64_t part = push(edge.to, std::min(most - pushed, edge.room));
        edge.room -= part;
        edges_[edges_of_[from][at] ^ 1U].room += part;
        pushed += part;
        if (pushed == most) {
            return pushed;
        }
    }
    return pushed;
}

std::uint64_t MaxFlow::run() {
    std::uint64_t all = 0;
    while (measure()) {
        next_.assign(edges_of_.size(), 0);
        all += push(0, std::numeric_limits<std::uint64_t>::max());
    }
    return all;
}

AccountFlow::AccountFlow(const std::vector<Bytes>& accounts, const std::vector<Bytes>& nodes)
    : first_node_(1 + accounts.size()),
      flow_(first_node_ + nodes.size() + 1) {
    for (std::size_t i = 0; i < accounts.size(); ++i) {
        flow_.add_edge(0, 1 + i, accounts[i].count());
    }
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        flow_.add_edge(first_node_ + i, first_node_ + nodes.size(), nodes[i].count());
    }
}

bool AccountFlow::is_whole() const {
    bool result = true;
    for (std::size_t i = 0; i + 1 < first_node_; ++i) {
        result = result && stuck(i) == Bytes::zero();
    }
    return result;
}

}  // namespace stoker::control
