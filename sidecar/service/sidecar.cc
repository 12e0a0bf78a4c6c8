#include "sidecar/service/sidecar.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "common/log/log.h"

namespace stoker::sidecar {

Result<std::unique_ptr<Sidecar>> Sidecar::start(
    const SidecarConfig& config,
    EventLoop& loop,
    const Machine& machine,
    const OriginFactory& make_origin) {
    auto sidecar = std::unique_ptr<Sidecar>{new Sidecar(config, loop, machine)};
    for (const DatasetConfig& dataset : config.datasets) {
        auto origin = make_origin(dataset);
        if (!origin) {
            return fail(origin.error().prefixed(fmt::format("dataset '{}'", dataset.name)));
        }
        sidecar->origins_.push_back(*std::move(origin));
    }
    sidecar->listen_for_peers();
    for (std::size_t i = 0; i < config.datasets.size(); ++i) {
        sidecar->nodes_.push_back(std::make_unique<DatasetNode>(
            sidecar->parts_of(machine, config.datasets[i]),
            config.datasets[i],
            *sidecar->origins_[i]));
    }
    SessionServerOptions options;
    options.path = config.socket_path;
    options.mode = config.socket_mode;
    options.sessions_max = config.connections_max;
    options.sidecar = sidecar->id_;
    STOKER_TRY(
        sidecar->server_,
        SessionServer::listen(
            loop,
            sidecar->connection_ids_,
            options,
            [raw = sidecar.get()](const local::Hello& hello) { return raw->route(hello); }));
    log::info("listening", {{"socket", config.socket_path}, {"datasets", config.datasets.size()}});
    return sidecar;
}

Sidecar::Sidecar(const SidecarConfig& config, EventLoop& loop, const Machine& machine)
    : config_(config),
      loop_(loop),
      id_(machine.process),
      peers_(machine.peers),
      peer_key_(machine.peer_key),
      io_(machine.make_workers("io", config.io_threads)) {}

SidecarParts Sidecar::parts_of(const Machine& machine, const DatasetConfig& dataset) {
    return {
        loop_,
        *io_,
        machine.make_workers,
        machine.device,
        connection_ids_,
        machine.boot_id,
        config_.job.training_job_uid,
        config_.job.attempt_uid,
        id_,
        !config_.control.endpoint.empty(),
        config_.job.pod_namespace,
        config_.job.node,
        dataset.peers ? peers_ : nullptr,
        peer_address_};
}

// Listens for peers. Without an address, every sample comes from the origin.
void Sidecar::listen_for_peers() {
    if (peers_ == nullptr) {
        return;
    }
    peer_server_ = std::make_unique<PeerServer>(
        loop_, config_.job.pod_namespace, [this](const std::string& dataset_uid) {
            return route_peer(dataset_uid);
        });
    auto address = peer_server_->listen(*peers_);
    if (!address) {
        log::warning("cannot listen for peers", {{"error", address.error().message}});
        peer_server_.reset();
        peers_ = nullptr;
        return;
    }
    peer_address_ = *std::move(address);
}

PeerHandler* Sidecar::route_peer(const std::string& dataset_uid) const {
    for (const auto& node : nodes_) {
        if (node->config().uid == dataset_uid && node->leader() != nullptr) {
            return node->leader()->peer_desk();
        }
    }
    return nullptr;
}

// Stops new requests first, then waits for running work, then closes the files.
Sidecar::~Sidecar() {
    server_.reset();
    peer_server_.reset();
    for (const auto& node : nodes_) {
        node->stop();
    }
    origins_.clear();
    io_.reset();
    for (const auto& node : nodes_) {
        node->close();
    }
}

LinkCallbacks Sidecar::link_callbacks() {
    LinkCallbacks callbacks;
    callbacks.grant = [this](const control::Grant& grant) {
        loop_.post([this, grant] { take(grant); });
    };
    callbacks.probe = [this](const control::Probe& probe) {
        loop_.post([this, probe] { set_probe({probe.id, probe.batches}); });
    };
    callbacks.pin = [this](const control::RevisionPin& pin) {
        loop_.post([this, pin] { set_pin(pin); });
    };
    callbacks.peers = [this](const control::PeerGroup& group) {
        loop_.post([this, group] { set_peers(group); });
    };
    if (peers_ != nullptr) {
        callbacks.peer_request = [request = peer_key_.request] { return request; };
    }
    callbacks.peer_certificate = [this](const control::PeerCertificate& certificate) {
        loop_.post([this, certificate] { set_peer_certificate(certificate); });
    };
    return callbacks;
}

void Sidecar::take(const control::Grant& grant) {
    JobWeights weights;
    for (const control::JobWeight& weight : grant.weights) {
        weights[weight.job_uid] = weight.weight;
    }
    set_grant(
        grant.dataset_uid,
        {grant.resident_bytes,
         loop_.now() + std::chrono::seconds{grant.valid_seconds},
         grant.origin_bytes_per_second,
         grant.fill ? std::optional{grant.fill->origin_bytes_per_second} : std::nullopt},
        weights);
}

void Sidecar::set_grant(
    const std::string& dataset_uid, const EngineGrant& grant, const JobWeights& weights) {
    for (const auto& node : nodes_) {
        if (node->config().uid == dataset_uid) {
            node->set_grant(grant, weights);
        }
    }
}

void Sidecar::set_probe(const local::Probe& probe) {
    for (const auto& node : nodes_) {
        node->set_probe(probe);
    }
}

void Sidecar::set_pin(const control::RevisionPin& pin) {
    for (const auto& node : nodes_) {
        if (node->config().uid == pin.dataset_uid) {
            node->set_pin(pin);
        }
    }
}

void Sidecar::set_peers(const control::PeerGroup& group) {
    for (const auto& node : nodes_) {
        if (node->config().uid == group.dataset_uid) {
            node->set_peers(group);
        }
    }
}

void Sidecar::set_peer_certificate(const control::PeerCertificate& certificate) {
    if (peers_ != nullptr) {
        peers_->set_credentials({certificate.chain, peer_key_.key, certificate.trust});
    }
}

bool Sidecar::is_in_use() const {
    return session_count() > 0 ||
           std::ranges::any_of(nodes_, [](const auto& node) { return node->is_in_use(); });
}

Result<SessionHandler*> Sidecar::route(const local::Hello& hello) {
    std::vector<std::string> names;
    for (const auto& node : nodes_) {
        if (node->config().name == hello.dataset) {
            return node.get();
        }
        names.push_back(node->config().name);
    }
    return fail(
        ErrorCode::kNotFound,
        fmt::format(
            "no dataset '{}'; this sidecar serves: {}", hello.dataset, fmt::join(names, ", ")));
}

}  // namespace stoker::sidecar
