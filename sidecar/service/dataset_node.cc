#include "sidecar/service/dataset_node.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <variant>

#include <fmt/core.h>

#include "common/domain/manifest_marks.h"
#include "common/domain/node_directory.h"
#include "common/log/log.h"
#include "sidecar/service/begin_frame.h"
#include "sidecar/service/unix_listener.h"
#include "sidecar/store/manifest_file.h"

namespace stoker::sidecar {

namespace {

// Intervals between attempts to take or find the lead. When a leader's connection ends, an attempt
// follows at once; the intervals cover changes without such an event.
constexpr Duration kSeekSoon = std::chrono::milliseconds{20};
constexpr Duration kSeekWhileFollowing = std::chrono::milliseconds{500};
constexpr Duration kSeekAfterError = std::chrono::seconds{2};
constexpr Duration kLostAgain = std::chrono::seconds{1};
constexpr Duration kSeekAfterLostAgain = std::chrono::milliseconds{100};
constexpr Duration kLeaderPatience = std::chrono::seconds{3};  // time for a leader to start
constexpr Duration kSilenceTold = std::chrono::seconds{10};
constexpr Duration kTellToWait = std::chrono::seconds{1};
constexpr Duration kAskGateAgain = std::chrono::seconds{1};
constexpr std::size_t kPartingMax = 1024;

}  // namespace

DatasetNode::DatasetNode(const SidecarParts& parts, const DatasetConfig& config, Origin& origin)
    : parts_(parts),
      config_(config),
      origin_(origin),
      gate_(config.pinned && parts.operator_grants),
      gate_timer_(parts.loop),
      seek_timer_(parts.loop),
      lead_(parts, config, origin, gate_, totals_, {[this] { seek(); }, [this] { judge_pin(); }}),
      watch_(
          parts.loop, [this] { return connect_to_leader(); }, [this] { on_watch(); }),
      proof_(parts, config, origin, [this] { admit_relays(); }),
      marks_(parts_, config),
      tasks_(parts.loop) {
    seek();
}

void DatasetNode::attach(Session& session) {
    totals_.attach(session);
    if (leader() != nullptr) {
        leader()->attach(session);
        return;
    }
    if (const std::string why = no_leader(); !why.empty() && !must_wait()) {
        session.refuse({ErrorCode::kUnavailable, why});
        return;
    }
    auto relay = std::make_unique<Relay>(
        parts_.loop,
        session,
        config_.client_directory,
        totals_,
        Relay::Callbacks{
            [this] { on_lost(); },
            [this] { admit_relays_soon(); },
            [this] { return must_wait(); }});
    relays_.emplace(session.id(), std::move(relay));
    session.send_listing(0);
    seek_later(Duration{});
}

// Checks every frame here, whoever leads: an invalid one ends its own session, not the connection
// to the leader.
void DatasetNode::on_frame(Session& session, Frame frame) {
    const auto type = static_cast<local::FrameType>(frame.message.index() + 1);
    if (!local::is_client_frame(type)) {
        const auto why =
            fmt::format("unexpected frame type {} from a client", static_cast<unsigned>(type));
        session.send_error({ErrorCode::kInvalidArgument, why}, frame.request_id);
        session.hang_up();
        return;
    }
    if (auto* begin = std::get_if<local::Begin>(&frame.message)) {
        if (const auto limited = limit_begin(*begin, config_.contract); !limited) {
            session.send_error(limited.error(), frame.request_id);
            return;
        }
        stamp_job(*begin, parts_.job_uid);
    }
    if (totals_.on_frame(session, frame, sample_count(session))) {
        return;
    }
    if (std::holds_alternative<local::Consumed>(frame.message)) {
        frame.request_id = 0;  // the answer is for this sidecar, not for the client
    }
    const auto relay = relays_.find(session.id());
    if (relay != relays_.end()) {
        relay->second->on_request(std::move(frame));
    } else if (leader() != nullptr) {
        leader()->on_frame(session, std::move(frame));
    } else {
        session.hang_up();
    }
}

void DatasetNode::detach(Session& session) {
    totals_.detach(session);
    if (auto relay = relays_.extract(session.id())) {
        part(session.id(), std::move(relay.mapped()));
    } else if (leader() != nullptr) {
        leader()->detach(session);
    }
}

// Keeps the relay until the leader has counted the client's last reads.
void DatasetNode::part(ConnectionId id, std::unique_ptr<Relay> relay) {
    if (parting_.size() >= kPartingMax) {
        return;
    }
    Relay& left = *relay;
    parting_.emplace(id, std::move(relay));
    left.part([this, id] { tasks_.post([this, id] { parting_.erase(id); }); });
}

// Number of samples in the session's revision; 0: not known yet.
std::uint64_t DatasetNode::sample_count(const Session& session) const {
    const auto relay = relays_.find(session.id());
    if (relay != relays_.end()) {
        return relay->second->sample_count();
    }
    return leader() == nullptr ? 0 : leader()->sample_count();
}

bool DatasetNode::is_ready() const {
    return was_led_ || !must_wait();
}

bool DatasetNode::is_serving() const {
    if (leader() != nullptr) {
        return leader()->state() == control::ManifestState::kReady;
    }
    return std::ranges::any_of(
        relays_, [](const auto& entry) { return entry.second->is_welcomed(); });
}

bool DatasetNode::is_in_use() const {
    const auto& until = grant().valid_until;
    const bool is_granted = until && parts_.loop.now() < *until;
    return leader() == nullptr || is_granted || lead_.has_followers();
}

void DatasetNode::stop() {
    gate_timer_.cancel();
    seek_timer_.cancel();
    watch_.stop();
    lead_.stop();
}

void DatasetNode::close() {
    lead_.close();
    follows_ = false;
}

void DatasetNode::seek() {
    if (leader() != nullptr) {
        follow();
        return;
    }
    const bool has_clients =
        std::ranges::any_of(relays_, [](const auto& entry) { return entry.second->is_welcomed(); });
    const auto leads = lead_.take(has_clients);
    if (!leads) {
        if (std::exchange(error_, leads.error().message) != error_) {
            log::error(
                "the node directory cannot be used",
                {{"dataset", config_.name}, {"error", leads.error().message}});
        }
        for (auto& [id, relay] : relays_) {
            relay->session().refuse(leads.error());
        }
        seek_later(kSeekAfterError);
        return;
    }
    error_.clear();
    follows_ = !*leads;
    if (!follows_) {
        watch_.stop();
        follow();
        return;
    }
    watch_.start();
    if (is_leaderless()) {
        stand_in();
    }
    ask_for_patience();
    tell_silence();
    follow();
}

// Connects sessions without a leader to the current one, which may be us.
void DatasetNode::follow() {
    bool all = true;
    for (auto& [id, relay] : relays_) {
        if (relay->is_connected() || is_leaderless()) {
            continue;
        }
        if (auto connection = connect_to_leader()) {
            relay->connect(*std::move(connection));
        } else if (leader() != nullptr) {
            relay->session().hang_up();  // our socket is closed; its client reconnects
        } else {
            all = false;
        }
    }
    if (leader() == nullptr) {
        seek_later(all ? kSeekWhileFollowing : kSeekSoon);
    }
}

void DatasetNode::seek_later(Duration delay) {
    seek_timer_.run_in(delay, [this] { seek(); });
}

// Looks for a leader at once after the last one's death, but not in a tight loop if a process that
// holds the socket keeps hanging up.
void DatasetNode::on_lost() {
    const TimePoint now = parts_.loop.now();
    const bool again = lost_at_ && now - *lost_at_ < kLostAgain;
    lost_at_ = now;
    seek_later(again ? kSeekAfterLostAgain : Duration{});
}

// Deferred, because a relay calls it from its own callbacks.
void DatasetNode::admit_relays_soon() {
    tasks_.post([this] { admit_relays(); });
}

// Admits waiting trainers. As leader we have listed the origin ourselves; as follower we must prove
// first that our key can read it.
void DatasetNode::admit_relays() {
    for (auto& [id, relay] : relays_) {
        const auto revision = relay->waits_for();
        if (!revision) {
            continue;
        }
        const auto state =
            leader() != nullptr ? AccessProof::State::kProven : proof_.ask(*revision);
        if (state == AccessProof::State::kProven) {
            admit(*relay, *revision);
        } else if (state != AccessProof::State::kAsking) {
            relay->session().refuse(proof_.error());
        }
    }
}

// watch_ calls this function, which therefore must not destroy watch_.
void DatasetNode::on_watch() {
    was_led_ = was_led_ || watch_.state() == LeaderWatch::State::kAnswering;
    if (is_leaderless()) {
        stand_in();
    } else {
        follow();
    }
}

// While a leader does not answer, its clients read the origin themselves.
void DatasetNode::stand_in() {
    if (must_wait()) {
        return;  // the clients' requests stay in the relays' logs
    }
    for (auto& [id, relay] : relays_) {
        relay->stand_in({ErrorCode::kUnavailable, no_leader()});
    }
}

// Tells clients without a welcome that we are working: they give up if they receive nothing.
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

// True for a guest without a key of its own: only the owner's leader can serve it.
bool DatasetNode::must_wait() const {
    return config_.guest && !origin_.has_key();
}

bool DatasetNode::is_leaderless() const {
    return follows_ &&
           (watch_.state() == LeaderWatch::State::kSilent || watch_.unanswered() > kLeaderPatience);
}

Duration DatasetNode::leader_silence() const {
    const Duration silence = follows_ ? watch_.unanswered() : Duration{};
    return silence > kSilenceTold ? silence : Duration{};
}

void DatasetNode::tell_silence() {
    const bool is_silent = leader_silence() > Duration{};
    if (is_silent && !told_silence_) {
        log::warning("no sidecar leads", {{"dataset", config_.name}, {"error", error()}});
    } else if (told_silence_ && !is_silent) {
        log::info("the node directory's leader answers again", {{"dataset", config_.name}});
    }
    told_silence_ = is_silent;
}

std::string DatasetNode::error() const {
    const bool refused = follows_ && proof_.state() == AccessProof::State::kRefused;
    return refused ? proof_.error().message : no_leader();
}

std::string DatasetNode::no_leader() const {
    if (!error_.empty()) {
        return error_;
    }
    const bool answers = watch_.state() == LeaderWatch::State::kAnswering;
    if (!lead_.refusal().message.empty() && leader() == nullptr && !answers) {
        return lead_.refusal().message;
    }
    if (!is_leaderless()) {
        return {};
    }
    if (must_wait()) {
        return "no sidecar of the dataset's owner serves this node yet; waiting for one, because "
               "this "
               "pod has no key of its own";
    }
    if (config_.guest) {
        return "no sidecar of the dataset's owner serves this node; trainers read the origin "
               "themselves";
    }
    return fmt::format(
        "another process holds the lock of {} and has not answered for {} s; trainers read the "
        "origin themselves",
        config_.directory,
        std::chrono::duration_cast<std::chrono::seconds>(watch_.unanswered()).count());
}

// Reads the secret last: a leader writes its own before it listens. Guests need no secret.
Result<LeaderConnection> DatasetNode::connect_to_leader() const {
    if (config_.guest) {
        const std::string guests = domain::guests_folder(config_.directory);
        STOKER_TRY(auto socket, connect_unix(join_path(guests, domain::kLeaderSocket)));
        return LeaderConnection{std::move(socket), local::Peer{{}, parts_.sidecar_id}};
    }
    const std::string control = domain::control_folder(config_.directory);
    STOKER_TRY(auto socket, connect_unix(join_path(control, domain::kLeaderSocket)));
    STOKER_TRY(const auto secret, load_secret(parts_.device, control));
    return LeaderConnection{std::move(socket), local::Peer{secret, parts_.sidecar_id}};
}

void DatasetNode::set_pin(const control::RevisionPin& pin) {
    const bool is_news = !pin_ || pin_->revision != pin.revision;
    pin_ = pin;
    gate_.pin(pin.revision);
    if (is_news) {
        log::info(
            "the operator has pinned the attempt's revision",
            {{"dataset", config_.name}, {"revision", domain::to_string(pin.revision)}});
    }
    if (leader() != nullptr) {
        leader()->on_pin();
    }
    admit_relays();
    judge_pin();
}

std::optional<domain::RevisionId> DatasetNode::read_revision() const {
    for (const auto& [id, relay] : relays_) {
        if (const auto revision = relay->revision()) {
            return revision;
        }
    }
    const auto* manifest = leader() == nullptr ? nullptr : leader()->manifest();
    return manifest == nullptr ? std::nullopt : std::optional{manifest->revision()};
}

const domain::ManifestMarks* DatasetNode::followed_marks() const {
    const auto revision = read_revision();
    return revision ? marks_.of(*revision) : nullptr;
}

// Admits the client if our trainers may read the revision (RevisionGate). Otherwise tells the
// client that we are working, and tries again later.
void DatasetNode::admit(Relay& relay, domain::RevisionId revision) {
    if (config_.pinned) {
        marks_.find(revision);
    }
    if (gate_.judge(revision, false, parts_.loop.now()) == RevisionGate::Verdict::kGo) {
        relay.admit();
        return;
    }
    relay.session().send_listing(0);
    judge_pin();
    gate_timer_.run_in(kAskGateAgain, [this] { admit_relays(); });
}

// Compares our trainers' revision with the pin, even if they began before there was one.
void DatasetNode::judge_pin() {
    const auto revision = read_revision();
    if (!pin_ || !revision) {
        return;
    }
    gate_.judge(*revision, false, parts_.loop.now());
    if (!gate_.has_changed()) {
        origin_change_.reset();
    } else if (!origin_change_ || (origin_change_->keys == 0 && !pin_->marks.digests.empty())) {
        origin_change_ = find_change();
        log::error(
            "the origin changed: this attempt's ranks have different revisions",
            {{"dataset", config_.name},
             {"revision", domain::to_string(*revision)},
             {"pinned", domain::to_string(pin_->revision)},
             {"key", origin_change_->key}});
    }
}

control::OriginChange DatasetNode::find_change() const {
    const auto find = [this](const domain::ManifestView& ours) -> control::OriginChange {
        const auto range = domain::find_difference(ours, pin_->marks);
        if (!range) {
            return {};
        }
        const bool has_key = range->first < ours.sample_count();
        return {
            has_key ? std::string{ours.sample(domain::SampleId{range->first}).key} : "",
            range->count};
    };
    if (leader() != nullptr && leader()->manifest() != nullptr) {
        return find(*leader()->manifest());
    }
    const auto mapped = MappedManifest::open(
        parts_.device, domain::data_folder(config_.directory), *read_revision());
    return mapped ? find(mapped->view()) : control::OriginChange{};
}

}  // namespace stoker::sidecar
