#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/base/bytes.h"

namespace stoker::control {

// Bytes from a source to a sink through a network, as many as can be (Dinic 1970). Vertices are
// 0..count-1, of which the first is the source and the last the sink. Deterministic. Pure; private
// to operator/core/allocation.
class MaxFlow {
public:
    explicit MaxFlow(std::size_t vertex_count)
        : edges_of_(vertex_count) {}

    // `back`: what flows already and may be taken back. Returns the edge's number.
    std::size_t add_edge(
        std::size_t from, std::size_t to, std::uint64_t room, std::uint64_t back = 0);

    // More room on an edge.
    void widen(std::size_t edge, std::uint64_t more) { edges_[edge].room += more; }

    // Adds what still fits to what flows; returns how much that is.
    std::uint64_t run();

    [[nodiscard]] std::uint64_t room(std::size_t edge) const { return edges_[edge].room; }

    // Whether more could flow from the vertex to the sink.
    [[nodiscard]] bool reaches_sink(std::size_t vertex) const { return to_sink_[vertex] != kFar; }

private:
    static constexpr std::uint32_t kFar = ~std::uint32_t{0};

    struct Edge {
        std::size_t to = 0;
        std::uint64_t room = 0;
    };

    // Edges on the shortest ways to the sink, for every vertex; whether the source has one.
    bool measure();
    std::uint64_t push(std::size_t from, std::uint64_t most);

    std::vector<Edge> edges_;  // each beside the one that goes back
    std::vector<std::vector<std::size_t>> edges_of_;
    std::vector<std::size_t> next_;  // of each vertex, the edge to try next
    std::vector<std::uint32_t> to_sink_;
};

// A MaxFlow from accounts through their bytes on nodes.
class AccountFlow {
public:
    // What flows from each account and through each node at most.
    AccountFlow(const std::vector<Bytes>& accounts, const std::vector<Bytes>& nodes);

    // What may flow from the account to the node, and what flows already and may be taken back.
    // Returns the edge's number.
    std::size_t add(std::size_t account, std::size_t node, Bytes room, Bytes back = {}) {
        return flow_.add_edge(1 + account, first_node_ + node, room.count(), back.count());
    }

    void widen(std::size_t account, Bytes more) { flow_.widen(2 * account, more.count()); }

    void run() { flow_.run(); }

    [[nodiscard]] Bytes flowing(std::size_t edge) const { return Bytes{flow_.room(edge + 1)}; }

    // The part of the account's limit that does not flow.
    [[nodiscard]] Bytes stuck(std::size_t account) const { return Bytes{flow_.room(2 * account)}; }

    // Whether all limits of accounts flow.
    [[nodiscard]] bool is_whole() const;

    [[nodiscard]] bool is_full(std::size_t node) const {
        return !flow_.reaches_sink(first_node_ + node);
    }

private:
    std::size_t first_node_;
    MaxFlow flow_;
};

}  // namespace stoker::control
