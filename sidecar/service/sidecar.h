#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/runtime/event_loop.h"
#include "common/runtime/workers.h"
#include "sidecar/config/sidecar_config.h"
#include "sidecar/control/link_session.h"
#include "sidecar/device/device.h"
#include "sidecar/origin/origin.h"
#include "sidecar/peers/peer_key.h"
#include "sidecar/peers/peer_network.h"
#include "sidecar/service/dataset_node.h"
#include "sidecar/service/peer_server.h"
#include "sidecar/service/session.h"

namespace stoker::sidecar {

using OriginFactory = std::function<Result<std::unique_ptr<Origin>>(const DatasetConfig&)>;

// The parts of the machine that a sidecar's process uses; the owner is the caller.
struct Machine {
    Device& device;         // must outlive the sidecar
    std::string boot_id;    // of the running kernel; empty: not known
    std::uint64_t process;  // random: distinguishes our sessions from those of other sidecars
    MakeWorkers make_workers;
    PeerNetwork* peers = nullptr;  // nullptr: no peers; must outlive the sidecar
    PeerKey peer_key{};            // the key for the certificates that the operator sends
};

// Serves every dataset of the configuration on one socket; HTTP and the operator are elsewhere. Use
// it on the loop's thread; its arguments must outlive it.
class Sidecar {
public:
    // kInvalidArgument: an invalid origin. Errors of UnixListener::listen(): the socket.
    static Result<std::unique_ptr<Sidecar>> start(
        const SidecarConfig& config,
        EventLoop& loop,
        const Machine& machine,
        const OriginFactory& make_origin);

    Sidecar(const Sidecar&) = delete;
    Sidecar& operator=(const Sidecar&) = delete;

    // Ends every session, finishes pending work, seals the stores, releases the leads.
    ~Sidecar();

    // Callbacks through which the operator's orders arrive; `report` is left empty. Any thread may
    // call them: each posts its order to the loop. Do not call them after this object is destroyed.
    [[nodiscard]] LinkCallbacks link_callbacks();

    // Applies the operator's orders for one dataset, by its uid; ignores an unknown dataset.
    void set_grant(
        const std::string& dataset_uid, const EngineGrant& grant, const JobWeights& weights);
    void set_probe(const local::Probe& probe);
    void set_pin(const control::RevisionPin& pin);
    void set_peers(const control::PeerGroup& group);
    void set_peer_certificate(const control::PeerCertificate& certificate);

    [[nodiscard]] const SidecarConfig& config() const { return config_; }

    [[nodiscard]] const std::vector<std::unique_ptr<DatasetNode>>& nodes() const { return nodes_; }

    [[nodiscard]] std::size_t session_count() const {
        return server_ == nullptr ? 0 : server_->session_count();
    }

    // False if no client uses the directories that we lead and no grant of the operator is valid.
    [[nodiscard]] bool is_in_use() const;

private:
    Sidecar(const SidecarConfig& config, EventLoop& loop, const Machine& machine);

    SidecarParts parts_of(const Machine& machine, const DatasetConfig& dataset);
    void listen_for_peers();
    [[nodiscard]] PeerHandler* route_peer(const std::string& dataset_uid) const;
    void take(const control::Grant& grant);
    Result<SessionHandler*> route(const local::Hello& hello);

    const SidecarConfig& config_;
    EventLoop& loop_;
    std::uint64_t id_;    // Machine::process
    PeerNetwork* peers_;  // nullptr: no peers
    PeerKey peer_key_;
    std::string peer_address_;
    ConnectionIds connection_ids_;
    std::unique_ptr<Workers> io_;
    std::vector<std::unique_ptr<Origin>> origins_;
    std::vector<std::unique_ptr<DatasetNode>> nodes_;
    std::unique_ptr<SessionServer> server_;
    std::unique_ptr<PeerServer> peer_server_;
};

}  // namespace stoker::sidecar
