#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/runtime/event_loop.h"
#include "common/runtime/worker_pool.h"
#include "sidecar/config/sidecar_config.h"
#include "sidecar/device/device.h"
#include "sidecar/origin/origin.h"
#include "sidecar/service/dataset_node.h"
#include "sidecar/service/session.h"

namespace stoker::sidecar {

using OriginFactory = std::function<Result<std::unique_ptr<Origin>>(const DatasetConfig&)>;

// Serves every dataset of the configuration on one socket; HTTP and the operator are elsewhere.
// Belongs to the loop's thread; what it is made with outlives it.
class Sidecar {
public:
    // kInvalidArgument: an origin that cannot be. Those of UnixListener::listen(): the socket.
    static Result<std::unique_ptr<Sidecar>> start(
        const SidecarConfig& config,
        EventLoop& loop,
        Device& device,
        const OriginFactory& make_origin,
        std::string boot_id);

    Sidecar(const Sidecar&) = delete;
    Sidecar& operator=(const Sidecar&) = delete;

    // Ends every session, finishes what is under way, seals the stores, gives the leads away.
    ~Sidecar();

    // The operator's orders on one dataset, by its uid; a dataset that we do not have is ignored.
    void set_grant(
        const std::string& dataset_uid, const EngineGrant& grant, const JobWeights& weights);
    void set_probe(const local::Probe& probe);
    void set_pin(const control::RevisionPin& pin);

    [[nodiscard]] const SidecarConfig& config() const { return config_; }

    [[nodiscard]] const std::vector<std::unique_ptr<DatasetNode>>& nodes() const { return nodes_; }

    [[nodiscard]] std::size_t session_count() const {
        return server_ == nullptr ? 0 : server_->session_count();
    }

    // False while all that we do is to lead directories in which nobody reads, without a grant of
    // the operator's that is still valid.
    [[nodiscard]] bool is_in_use() const;

private:
    Sidecar(const SidecarConfig& config, EventLoop& loop);

    Result<SessionHandler*> route(const local::Hello& hello);

    const SidecarConfig& config_;
    EventLoop& loop_;
    std::uint64_t id_;  // tells our sessions from those of other sidecars
    ConnectionIds connection_ids_;
    std::unique_ptr<WorkerPool> io_;
    std::vector<std::unique_ptr<Origin>> origins_;
    std::vector<std::unique_ptr<DatasetNode>> nodes_;
    std::unique_ptr<SessionServer> server_;
};

}  // namespace stoker::sidecar
