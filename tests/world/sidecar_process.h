#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "sidecar/service/monitor.h"
#include "sidecar/service/sidecar.h"
#include "tests/world/origin_site.h"
#include "tests/world/process_device.h"
#include "tests/world/virtual_network.h"

namespace stoker::world {

// Objects that a node's sidecars share.
struct NodeParts {
    Schedule& schedule;
    Oracle& oracle;
    OriginSite& site;
    test::FaultDevice& disk;
    const Duration& slowest_task;  // of the workers
    std::string node;
    // Whether a leader may know that the sample's bytes are in the node directory.
    std::function<bool(std::uint64_t sample)> is_on_node;
    VirtualNetwork* network = nullptr;  // nullptr: no peers
    std::string peer_address{};         // of the process's pod
};

// One process of the real sidecar: class Sidecar over the node's disk, with the world's time,
// workers and origin. Not thread-safe.
class SidecarProcess final : public Program {
public:
    // `config` must outlive it.
    SidecarProcess(
        const NodeParts& parts,
        std::string name,
        const sidecar::SidecarConfig& config,
        std::string boot_id);

    // Shuts down as on SIGTERM, unless kill() came first.
    ~SidecarProcess() override;

    // Dies as by kill -9: nothing more reaches the disk or a socket; the sockets' names stay.
    // Destroy it soon.
    void kill();

    // As kill(), but in the middle of a change of the disk, after `changes` more changes.
    void kill_in_change(std::uint64_t changes) { device_.die_after(changes); }

    [[nodiscard]] bool is_dead() const { return is_dead_; }

    [[nodiscard]] bool holds_lock() const { return device_.holds_lock(); }

    void set_grant(const sidecar::EngineGrant& grant);

    // Delivers the operator's messages about peers.
    void set_group(const control::PeerGroup& group);
    void set_certificate(const control::PeerCertificate& certificate);

    // "leading", "preparing" (the leader), "following", "seeking".
    [[nodiscard]] std::string role() const;

    // Why the sidecar has no leader; empty: it has one.
    [[nodiscard]] std::string error() const { return sidecar_->nodes().front()->error(); }

    // One of the sidecar's pages: "/status", "/metrics", "/healthz", "/readyz".
    [[nodiscard]] http::ServerResponse answer(const std::string& page) const;

    // nullptr unless it leads.
    [[nodiscard]] const sidecar::Leader* leader() const;

private:
    void die();

    NodeParts parts_;
    const sidecar::SidecarConfig& config_;
    ProcessDevice device_;
    bool is_dead_ = false;
    std::unique_ptr<VirtualPeers> peers_;  // nullptr: none
    std::unique_ptr<sidecar::Sidecar> sidecar_;
    metrics::Registry registry_;
    std::optional<sidecar::Monitor> monitor_;  // nullopt: the sidecar is gone
};

}  // namespace stoker::world
