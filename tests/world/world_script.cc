// The functions of World that only scenarios call.
#include <fmt/format.h>

#include "tests/world/world.h"

namespace stoker::world {

bool World::strike(Fault fault, std::size_t pod) {
    ++faults_;
    return hit(fault, pods_[pod]);
}

void World::grant(std::size_t node, Bytes resident, std::optional<Duration> valid) {
    sidecar::EngineGrant grant{resident, std::nullopt};
    if (valid) {
        grant.valid_until = schedule_.now() + *valid;
    }
    set_grant(nodes_[node], grant);
}

void World::set_grant(Node& node, const sidecar::EngineGrant& grant) {
    const Bytes old = node.grant.resident_bytes;
    node.old_grants.emplace_back(schedule_.now(), old);
    node.grant = grant;
    node.granted_at = schedule_.now();
    node.own_fetches.clear();  // a smaller grant may have evicted them
    node.has_shrunk = node.grant.resident_bytes < old;
    schedule_.say(
        fmt::format("grants {} bytes on {}", node.grant.resident_bytes.count(), node.name));
    for (Pod& pod : pods_) {
        if (pod.node == &node && pod.sidecar != nullptr && !pod.sidecar->is_dead()) {
            pod.sidecar->set_grant(node.grant);
        }
    }
}

std::optional<std::size_t> World::leader(std::size_t node) const {
    for (std::size_t i = 0; i < pods_.size(); ++i) {
        if (pods_[i].node == &nodes_[node] && pods_[i].is_ready_leader()) {
            return i;
        }
    }
    return std::nullopt;
}

sidecar::LeaderStatus World::status(std::size_t node) const {
    const auto leads = leader(node);
    return leads ? pods_[*leads].sidecar->leader()->status() : sidecar::LeaderStatus{};
}

const SidecarProcess* World::sidecar(std::size_t pod) const {
    return pods_[pod].sidecar.get();
}

std::uint64_t World::count(const std::string& what) const {
    const auto found = oracle_->counts.find(what);
    return found == oracle_->counts.end() ? 0 : found->second;
}

}  // namespace stoker::world
