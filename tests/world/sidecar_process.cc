#include "tests/world/sidecar_process.h"

#include <cstdio>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/domain/node_directory.h"
#include "tests/world/virtual_workers.h"

namespace stoker::world {

SidecarProcess::SidecarProcess(
    const NodeParts& parts,
    std::string name,
    const sidecar::SidecarConfig& config,
    std::string boot_id)
    : Program(parts.schedule, std::move(name)),
      parts_(parts),
      config_(config),
      device_(
          parts.disk,
          {[this](const std::string& what) {
               parts_.oracle.accuse(this->name() + " writes without the lock: " + what);
           },
           [this] { die(); }}) {
    parts_.schedule.set_speaker(this->name());
    if (parts_.network != nullptr) {
        peers_ = std::make_unique<VirtualPeers>(
            *parts_.network, *this, parts_.node, parts_.peer_address);
    }
    auto started = sidecar::Sidecar::start(
        config_,
        loop(),
        {device_,
         std::move(boot_id),
         parts_.schedule.luck()(),
         [this](const std::string&, std::size_t count) {
             return std::make_unique<VirtualWorkers>(
                 parts_.schedule, *this, count, parts_.slowest_task, is_dead_);
         },
         peers_.get()},
        [this](const sidecar::DatasetConfig&) -> Result<std::unique_ptr<sidecar::Origin>> {
            return std::make_unique<SiteOrigin>(
                parts_.site,
                parts_.oracle,
                *this,
                config_.job.pod,
                FetchWatch{parts_.node, [this] { return leader() != nullptr; }, parts_.is_on_node});
        });
    STOKER_CHECK(started.has_value(), started ? "" : started.error().message.c_str());
    sidecar_ = *std::move(started);
    monitor_.emplace(*sidecar_, loop(), registry_);
}

SidecarProcess::~SidecarProcess() {
    parts_.schedule.set_speaker(name());
    monitor_.reset();
    if (!is_dead_) {
        sidecar_.reset();
        device_.restore_maps();  // the process may have died during the shutdown
        return;
    }
    // The sockets of a killed process stay on the disk. Hides them from the destructors.
    std::vector<std::string> names{config_.socket_path};
    if (holds_lock()) {
        names.push_back(sidecar::join_path(
            domain::control_folder(config_.datasets.front().directory), domain::kLeaderSocket));
    }
    for (const std::string& path : names) {
        std::rename(path.c_str(), (path + ".left").c_str());
    }
    sidecar_.reset();
    for (const std::string& path : names) {
        std::rename((path + ".left").c_str(), path.c_str());
    }
    device_.restore_maps();
}

http::ServerResponse SidecarProcess::answer(const std::string& page) const {
    return monitor_->answer({.method = "GET", .target = page, .peer = "127.0.0.1:1"});
}

void SidecarProcess::kill() {
    if (!is_dead_) {
        device_.die();
        die();
    }
}

void SidecarProcess::die() {
    is_dead_ = true;
    stop();
    drop_sockets();
    if (peers_ != nullptr) {
        peers_->die(true);
    }
}

void SidecarProcess::set_grant(const sidecar::EngineGrant& grant) {
    parts_.schedule.set_speaker(name());
    sidecar_->set_grant(config_.datasets.front().uid, grant, {});
}

void SidecarProcess::set_group(const control::PeerGroup& group) {
    parts_.schedule.set_speaker(name());
    sidecar_->link_callbacks().peers(group);
}

void SidecarProcess::set_certificate(const control::PeerCertificate& certificate) {
    parts_.schedule.set_speaker(name());
    sidecar_->link_callbacks().peer_certificate(certificate);
}

const sidecar::Leader* SidecarProcess::leader() const {
    return sidecar_ == nullptr ? nullptr : sidecar_->nodes().front()->leader();
}

std::string SidecarProcess::role() const {
    const sidecar::DatasetNode& node = *sidecar_->nodes().front();
    switch (node.role()) {
        case sidecar::Role::kLeading:
            return node.leader()->state() == control::ManifestState::kReady ? "leading"
                                                                            : "preparing";
        case sidecar::Role::kFollowing:
            return "following";
        case sidecar::Role::kSeeking:
            break;
    }
    return "seeking";
}

}  // namespace stoker::world
