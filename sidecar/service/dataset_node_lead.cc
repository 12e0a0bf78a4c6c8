// The half of DatasetNode that seeks the lead of its directory, leads or follows.
#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/core.h>

#include "common/domain/node_directory.h"
#include "common/log/log.h"
#include "sidecar/service/dataset_node.h"
#include "sidecar/service/unix_listener.h"
#include "sidecar/store/old_layout.h"

namespace stoker::sidecar {

namespace {

// The lead is sought at once when a leader's connection ends; these are for what nobody tells us.
constexpr Duration kSeekSoon = std::chrono::milliseconds{20};
constexpr Duration kSeekWhileFollowing = std::chrono::milliseconds{500};
constexpr Duration kSeekAfterError = std::chrono::seconds{2};
constexpr Duration kLostAgain = std::chrono::seconds{1};
constexpr Duration kSeekAfterLostAgain = std::chrono::milliseconds{100};
constexpr Duration kLeaderPatience = std::chrono::seconds{3};  // it may be starting
constexpr Duration kSilenceTold = std::chrono::seconds{10};
constexpr Duration kRestMax = std::chrono::seconds{60};
constexpr Duration kTellToWait = std::chrono::seconds{1};
constexpr std::size_t kPeerSessionsMax = 4096;  // of all pods

}  // namespace

void DatasetNode::close() {
    for (auto* leader : {&leader_, &retiring_}) {
        if (*leader != nullptr) {
            (*leader)->close_store();
            leader->reset();
        }
    }
    lock_.reset();
    role_ = Role::kSeeking;
}

void DatasetNode::seek() {
    if (role_ == Role::kLeading) {
        follow();
        return;
    }
    auto lock = try_lock();
    if (!lock) {
        if (std::exchange(error_, lock.error().message) != error_) {
            log::error(
                "the node directory cannot be used",
                {{"dataset", config_.name}, {"error", lock.error().message}});
        }
        for (auto& [id, relay] : relays_) {
            relay->session().refuse(lock.error());
        }
        seek_later(kSeekAfterError);
        return;
    }
    error_.clear();
    if (lock->has_value()) {
        lead(std::move(**lock));
        return;
    }
    role_ = Role::kFollowing;
    watch_.start();
    if (is_leaderless()) {
        stand_in();
    }
    ask_for_patience();
    tell_silence();
    follow();
}

// None while somebody else has it, or is to take it. A guest never has it.
Result<std::optional<DirectoryLock>> DatasetNode::try_lock() {
    if (config_.guest) {
        return std::optional<DirectoryLock>{};
    }
    if (rests_until_ && parts_.loop.now() < *rests_until_) {
        return std::optional<DirectoryLock>{};
    }
    STOKER_TRY_VOID(make_folders());
    return DirectoryLock::try_acquire(parts_.device, config_.directory);
}

// A directory that is mounted whole, or as its two folders, may come with them.
Status DatasetNode::make_folders() {
    STOKER_TRY_VOID(parts_.device.make_folder(domain::data_folder(config_.directory)));
    return parts_.device.make_folder(domain::control_folder(config_.directory), Access::kOwner);
}

void DatasetNode::remove_old_files() {
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

void DatasetNode::lead(DirectoryLock lock) {
    const bool keep_revision =
        std::ranges::any_of(relays_, [](const auto& entry) { return entry.second->is_welcomed(); });
    log::info("leading", {{"dataset", config_.name}, {"directory", config_.directory}});
    role_ = Role::kLeading;
    watch_.stop();
    lock_.emplace(std::move(lock));
    remove_old_files();
    refusal_ = {};
    rests_until_.reset();
    leader_ = std::make_unique<Leader>(
        parts_,
        config_,
        origin_,
        gate_,
        *this,
        Leader::Callbacks{
            [this](const Error& error) { on_forbidden(error); }, [this] { judge_pin(); }},
        keep_revision);
    leader_->set_grant(grant_);
    leader_->set_weights(weights_);
    leader_server_ = open_door();
    guest_doors_ = std::make_unique<GuestDoors>(
        parts_.loop,
        parts_.connection_ids,
        domain::guests_folder(config_.directory),
        [this](const local::Hello&) -> Result<SessionHandler*> { return leader_.get(); });
    follow();
}

void DatasetNode::close_doors() {
    leader_server_.reset();
    guest_doors_.reset();
}

// nullptr: other sidecars cannot follow us.
std::unique_ptr<SessionServer> DatasetNode::open_door() {
    auto server = [this]() -> Result<std::unique_ptr<SessionServer>> {
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
    }();
    if (!server) {
        log::warning(
            "other sidecars cannot follow us",
            {{"dataset", config_.name}, {"error", server.error().message}});
        return nullptr;
    }
    return *std::move(server);
}

// Connects the sessions that have no leader to the one that there is, us included.
void DatasetNode::follow() {
    bool all = true;
    for (auto& [id, relay] : relays_) {
        if (relay->is_connected() || is_leaderless()) {
            continue;
        }
        if (auto door = leader_door()) {
            relay->connect(*std::move(door));
        } else {
            all = false;
        }
    }
    if (role_ != Role::kLeading || !all) {
        seek_later(all ? kSeekWhileFollowing : kSeekSoon);
    }
}

void DatasetNode::seek_later(Duration delay) {
    seek_timer_.run_in(delay, [this] { seek(); });
}

// At once after a leader's death, but not in a tight circle when somebody there keeps hanging up.
void DatasetNode::on_lost() {
    const TimePoint now = parts_.loop.now();
    const bool again = lost_at_ && now - *lost_at_ < kLostAgain;
    lost_at_ = now;
    seek_later(again ? kSeekAfterLostAgain : Duration{});
}

// The origin does not give us what the others here want. Somebody else may have a better key.
void DatasetNode::on_forbidden(const Error& error) {
    if (leader_server_ == nullptr || !leader_server_->has_other_sidecars() || rests_until_) {
        return;
    }
    log::warning(
        "letting the lead go: the origin refuses our credentials",
        {{"dataset", config_.name}, {"error", error.message}});
    refusal_ = error;
    rests_until_ = TimePoint::max();
    tasks_.post([this] {
        if (leader_ == nullptr) {
            return;
        }
        close_doors();
        retiring_ = std::move(leader_);
        add_fetched(past_leads_, retiring_->status());
        role_ = Role::kSeeking;
        retiring_->retire([this] { on_retired(); });
    });
}

void DatasetNode::on_retired() {
    retiring_->close_store();
    tasks_.post([this] {
        retiring_.reset();
        lock_.reset();
        rests_until_ = parts_.loop.now() + std::exchange(rest_, std::min(rest_ * 2, kRestMax));
        seek();
    });
}

// Told by a relay in the middle of what it does.
void DatasetNode::admit_relays_soon() {
    tasks_.post([this] { admit_relays(); });
}

// A leader has listed the origin itself; a follower shows that its key is as good.
void DatasetNode::admit_relays() {
    for (auto& [id, relay] : relays_) {
        const auto revision = relay->waits_for();
        if (!revision) {
            continue;
        }
        const auto state =
            role_ == Role::kLeading ? AccessProof::State::kProven : proof_.ask(*revision);
        if (state == AccessProof::State::kProven) {
            admit(*relay, *revision);
        } else if (state != AccessProof::State::kAsking) {
            relay->session().refuse(proof_.error());
        }
    }
}

// In the middle of what the watch does: it must stay.
void DatasetNode::on_watch() {
    was_led_ = was_led_ || watch_.state() == LeaderWatch::State::kAnswering;
    if (is_leaderless()) {
        stand_in();
    } else {
        follow();
    }
}

// The clients of a leader that does not answer read the origin themselves until it does.
void DatasetNode::stand_in() {
    if (must_wait()) {
        return;  // what they ask for stays in the relays' logs
    }
    for (auto& [id, relay] : relays_) {
        relay->stand_in({ErrorCode::kUnavailable, no_leader()});
    }
}

// Clients that were not welcomed give up when they hear nothing.
void DatasetNode::ask_for_patience() {
    const TimePoint now = parts_.loop.now();
    if (!must_wait() || now - told_to_wait_at_ < kTellToWait) {
        return;
    }
    told_to_wait_at_ = now;
    for (auto& [id, relay] : relays_) {
        if (!relay->is_welcomed() && (!relay->is_connected() || is_leaderless())) {
            relay->session().send_listing(0);
        }
    }
}

// A guest without a key of its own: nobody but the owner's leader gives it anything.
bool DatasetNode::must_wait() const {
    return config_.guest && !origin_.has_key();
}

bool DatasetNode::is_leaderless() const {
    return role_ == Role::kFollowing &&
           (watch_.state() == LeaderWatch::State::kSilent || watch_.unanswered() > kLeaderPatience);
}

Duration DatasetNode::leader_silence() const {
    return role_ == Role::kFollowing && watch_.unanswered() > kSilenceTold ? watch_.unanswered()
                                                                           : Duration{};
}

void DatasetNode::tell_silence() {
    const bool is_silent = leader_silence() > Duration{};
    if (is_silent && !told_silence_) {
        log::warning("nobody leads", {{"dataset", config_.name}, {"error", error()}});
    } else if (told_silence_ && !is_silent) {
        log::info("the leader answers again", {{"dataset", config_.name}});
    }
    told_silence_ = is_silent;
}

std::string DatasetNode::error() const {
    const bool refused =
        role_ == Role::kFollowing && proof_.state() == AccessProof::State::kRefused;
    return refused ? proof_.error().message : no_leader();
}

std::string DatasetNode::no_leader() const {
    if (!error_.empty()) {
        return error_;
    }
    const bool answers = watch_.state() == LeaderWatch::State::kAnswering;
    if (!refusal_.message.empty() && role_ != Role::kLeading && !answers) {
        return refusal_.message;
    }
    if (!is_leaderless()) {
        return {};
    }
    if (config_.guest) {
        return nobody_serves_guests();
    }
    return fmt::format(
        "another process holds the lock of {} and has not answered for {} s; trainers read the "
        "origin themselves",
        config_.directory,
        std::chrono::duration_cast<std::chrono::seconds>(watch_.unanswered()).count());
}

std::string DatasetNode::nobody_serves_guests() const {
    return must_wait() ? "no sidecar of the dataset's owner serves this node yet; waiting for one, "
                         "because this pod has no key of its own"
                       : "no sidecar of the dataset's owner serves this node; trainers read the "
                         "origin themselves";
}

// The secret is read last: a leader writes its own before it listens. A guest's door asks for none.
Result<LeaderDoor> DatasetNode::leader_door() const {
    if (config_.guest) {
        const std::string guests = domain::guests_folder(config_.directory);
        STOKER_TRY(auto socket, connect_unix(join_path(guests, domain::kLeaderSocket)));
        return LeaderDoor{std::move(socket), local::Peer{{}, parts_.sidecar_id}};
    }
    const std::string control = domain::control_folder(config_.directory);
    STOKER_TRY(auto socket, connect_unix(join_path(control, domain::kLeaderSocket)));
    STOKER_TRY(const auto secret, load_secret(parts_.device, control));
    return LeaderDoor{std::move(socket), local::Peer{secret, parts_.sidecar_id}};
}

}  // namespace stoker::sidecar
