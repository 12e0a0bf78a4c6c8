#include "sidecar/service/leadership.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "common/domain/node_directory.h"
#include "common/log/log.h"
#include "sidecar/store/old_layout.h"

namespace stoker::sidecar {

namespace {

constexpr Duration kRestMin = std::chrono::seconds{5};
constexpr Duration kRestMax = std::chrono::seconds{60};
constexpr Duration kDoorAgain = std::chrono::seconds{1};
constexpr std::size_t kPeerSessionsMax = 4096;  // from the pods of all namespaces together

// Before the operator's first grant, nothing new is kept and nothing is dropped: an earlier job may
// have left data that the coming grant covers. Without an operator, the configured grant applies
// permanently.
EngineGrant first_grant(const SidecarParts& parts, const DatasetConfig& config) {
    if (parts.operator_grants) {
        return {Bytes::unlimited(), TimePoint{}};
    }
    return {config.grant_bytes, std::nullopt};
}

}  // namespace

void add_fetched(control::DatasetReport& sum, const control::DatasetReport& more) {
    sum.origin_requests += more.origin_requests;
    sum.origin_bytes_read += more.origin_bytes_read;
    sum.origin_request_time += more.origin_request_time;
    sum.corrupt_samples += more.corrupt_samples;
    sum.peer_bytes_read += more.peer_bytes_read;
    sum.peer_samples += more.peer_samples;
    sum.peer_hedges += more.peer_hedges;
    sum.peer_failures += more.peer_failures;
    sum.peer_connect_failures += more.peer_connect_failures;
}

Leadership::Leadership(
    const SidecarParts& parts,
    const DatasetConfig& config,
    Origin& origin,
    RevisionGate& gate,
    ReadingListener& listener,
    Callbacks callbacks)
    : parts_(parts),
      config_(config),
      origin_(origin),
      gate_(gate),
      listener_(listener),
      callbacks_(std::move(callbacks)),
      grant_(first_grant(parts, config)),
      weights_(config.weights),
      rest_(kRestMin),
      door_timer_(parts.loop),
      tasks_(parts.loop) {}

Result<bool> Leadership::take(bool keep_revision) {
    STOKER_TRY(auto lock, try_lock());
    if (!lock) {
        return false;
    }
    log::info("leading", {{"dataset", config_.name}, {"directory", config_.directory}});
    lock_ = std::move(lock);
    remove_old_files();
    refusal_ = {};
    rests_until_.reset();
    leader_ = std::make_unique<Leader>(
        parts_,
        config_,
        origin_,
        gate_,
        listener_,
        Leader::Callbacks{
            [this](const Error& error) { return on_forbidden(error); }, callbacks_.changed},
        keep_revision);
    leader_->set_grant(grant_, weights_);
    leader_->set_peers(peers_);
    open_doors();
    return true;
}

Result<std::optional<DirectoryLock>> Leadership::try_lock() {
    if (config_.guest || (rests_until_ && parts_.loop.now() < *rests_until_)) {
        return std::optional<DirectoryLock>{};
    }
    // Both folders may exist already, because each may be a mount point.
    STOKER_TRY_VOID(parts_.device.make_folder(domain::data_folder(config_.directory)));
    STOKER_TRY_VOID(
        parts_.device.make_folder(domain::control_folder(config_.directory), Access::kOwner));
    return DirectoryLock::try_acquire(parts_.device, config_.directory);
}

void Leadership::remove_old_files() {
    const auto removed = remove_old_layout(parts_.device, config_.directory);
    if (!removed) {
        log::warning(
            "files of version 0.1 cannot be removed",
            {{"dataset", config_.name}, {"error", removed.error().message}});
    } else if (*removed > 0) {
        log::info(
            "removed the files of version 0.1",
            {{"dataset", config_.name}, {"directory", config_.directory}, {"files", *removed}});
    }
}

void Leadership::open_doors() {
    open_door();
    guest_doors_ = std::make_unique<GuestDoors>(
        parts_.loop,
        parts_.connection_ids,
        domain::guests_folder(config_.directory),
        [this](const local::Hello&) -> Result<SessionHandler*> { return leader_.get(); });
}

// Opens the socket for other sidecars. Tries again after a failure, because the disk may accept the
// secret file later.
void Leadership::open_door() {
    auto server = listen();
    if (server) {
        followers_ = *std::move(server);
        door_error_.clear();
        return;
    }
    if (std::exchange(door_error_, server.error().message) != door_error_) {
        log::warning(
            "cannot open the socket for other sidecars",
            {{"dataset", config_.name}, {"error", door_error_}});
    }
    door_timer_.run_in(kDoorAgain, [this] { open_door(); });
}

Result<std::unique_ptr<SessionServer>> Leadership::listen() {
    const std::string control = domain::control_folder(config_.directory);
    SessionServerOptions options;
    options.path = join_path(control, domain::kLeaderSocket);
    options.mode = 0600;
    options.sessions_max = kPeerSessionsMax;
    options.sidecar = parts_.sidecar_id;
    options.secret = random_secret();
    STOKER_TRY_VOID(save_secret(parts_.device, control, *options.secret));
    return SessionServer::listen(
        parts_.loop,
        parts_.connection_ids,
        options,
        [this](const local::Hello&) -> Result<SessionHandler*> { return leader_.get(); });
}

void Leadership::close_doors() {
    door_timer_.cancel();
    followers_.reset();
    guest_doors_.reset();
}

void Leadership::set_grant(EngineGrant grant, JobWeights weights) {
    if (parts_.operator_grants && leader_ == nullptr) {
        return;
    }
    grant_ = grant;
    weights_ = std::move(weights);
    if (leader_ != nullptr) {
        leader_->set_grant(grant_, weights_);
    }
}

void Leadership::forget_orders() {
    if (parts_.operator_grants) {
        grant_ = first_grant(parts_, config_);
        weights_ = config_.weights;
    }
}

void Leadership::set_peers(const control::PeerGroup& group) {
    if (group.version < peers_.version) {
        return;
    }
    peers_ = group;
    if (leader_ != nullptr) {
        leader_->set_peers(peers_);
    }
}

bool Leadership::has_followers() const {
    return (followers_ != nullptr && followers_->session_count() > 0) ||
           (guest_doors_ != nullptr && guest_doors_->session_count() > 0);
}

// Called when the origin denies us samples that clients want: another sidecar may have a better
// key. False: no other sidecar follows, so we keep the lead.
bool Leadership::on_forbidden(const Error& error) {
    if (rests_until_) {
        return true;
    }
    if (followers_ == nullptr || !followers_->has_other_sidecars()) {
        return false;
    }
    log::warning(
        "releasing the lead: the origin denies access with our credentials",
        {{"dataset", config_.name}, {"error", error.message}});
    refusal_ = error;
    rests_until_ = TimePoint::max();
    tasks_.post([this] {
        if (leader_ == nullptr) {
            return;
        }
        close_doors();
        retiring_ = std::move(leader_);
        forget_orders();
        add_fetched(past_leads_, retiring_->status());
        retiring_->retire([this] { on_retired(); });
    });
    return true;
}

void Leadership::on_retired() {
    retiring_->close_store();
    tasks_.post([this] {
        retiring_.reset();
        lock_.reset();
        rests_until_ = parts_.loop.now() + std::exchange(rest_, std::min(rest_ * 2, kRestMax));
        callbacks_.ended();
    });
}

void Leadership::stop() {
    close_doors();
    if (leader_ != nullptr) {
        leader_->stop_preparing();
    }
}

void Leadership::close() {
    for (auto* leader : {&leader_, &retiring_}) {
        if (*leader != nullptr) {
            (*leader)->close_store();
            leader->reset();
        }
    }
    lock_.reset();
}

}  // namespace stoker::sidecar
