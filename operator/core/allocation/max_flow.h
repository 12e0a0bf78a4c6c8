#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/base/bytes.h"

namespace stoker::control {

// Maximum flow of bytes from a source to a sink (Dinic 1970). Vertices are 0..count-1; the first is
// the source, the last the sink. Deterministic. Pure; private to operator/core/allocation.
class MaxFlow {
public:
    explicit MaxFlow(std::size_t vertex_count)
        : edges_of_(vertex_count) {}

    // `back`: existing flow that may be reversed. Returns the edge's number.
    std::size_t add_edge(
        std::size_t from, std::size_t to, std::uint64_t room, std::uint64_t back = 0);

    // Raises an edge's capacity.
    void widen(std::size_t edge, std::uint64_t more) { edges_[edge].room += more; }

    // Adds flow until it is maximal; returns the added amount.
    std::uint64_t run();

    [[nodiscard]] std::uint64_t room(std::size_t edge) const { return edges_[edge].room; }

    // Whether more flow could go from the vertex to the sink.
    [[nodiscard]] bool reaches_sink(std::size_t vertex) const { return to_sink_[vertex] != kFar; }

private:
    static constexpr std::uint32_t kFar = ~std::uint32_t{0};

    struct Edge {
        std::size_t to = 0;
        std::uint64_t room = 0;
    };

    // Measures each vertex's distance to the sink, in edges; returns whether the source reaches it.
    bool measure();
    std::uint64_t push(std::size_t from, std::uint64_t most);

    std::vector<Edge> edges_;  // each next to its reverse edge
    std::vector<std::vector<std::size_t>> edges_of_;
    std::vector<std::size_t> next_;  // by vertex: the next edge to try
    std::vector<std::uint32_t> to_sink_;
};

// Maximum flow of bytes from accounts to nodes; each pair has its own limit.
class AccountFlow {
public:
    // Limits of the flow from each account and through each node.
    AccountFlow(const std::vector<Bytes>& accounts, const std::vector<Bytes>& nodes);

    // `room`: limit of the flow from the account to the node. `back`: existing flow that may be
    // reversed. Returns the edge's number.
    std::size_t add(std::size_t account, std::size_t node, Bytes room, Bytes back = {}) {
        return flow_.add_edge(1 + account, first_node_ + node, room.count(), back.count());
    }

    void widen(std::size_t account, Bytes more) { flow_.widen(2 * account, more.count()); }

    void run() { flow_.run(); }

    [[nodiscard]] Bytes flowing(std::size_t edge) const { return Bytes{flow_.room(edge + 1)}; }

    // The rest of the account's limit, which does not flow.
    [[nodiscard]] Bytes stuck(std::size_t account) const { return Bytes{flow_.room(2 * account)}; }

    // Whether every account's flow reaches its limit.
    [[nodiscard]] bool is_whole() const;

    [[nodiscard]] bool is_full(std::size_t node) const {
        return !flow_.reaches_sink(first_node_ + node);
    }

private:
    std::size_t first_node_;
    MaxFlow flow_;
};

}  // namespace stoker::control
