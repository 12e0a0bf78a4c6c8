#include "sidecar/service/leader.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <utility>

#include "common/log/log.h"

namespace stoker::sidecar {

namespace {

constexpr Duration kListingInterval = std::chrono::seconds{1};

void warn_of_large_samples(const DatasetConfig& config, const domain::ManifestView& manifest) {
    const Bytes largest{manifest.largest_sample_bytes()};
    if (largest > config.window_bytes) {
        log::warning(
            "samples larger than the window are cached only while the grant has room for them; "
            "format blocks caches large objects in ranges",
            {{"dataset", config.name},
             {"largest_bytes", largest.count()},
             {"window_bytes", config.window_bytes.count()}});
    }
}

// The generation increases from lead to lead, also over restarts of the process.
PeerSelf peer_self(const SidecarParts& parts, const DatasetConfig& config) {
    const auto wall = parts.loop.clock().wall_now().time_since_epoch().count();
    return {
        parts.pod_namespace,
        {config.uid, {}, parts.node, static_cast<std::uint64_t>(std::max<std::int64_t>(wall, 1))}};
}

}  // namespace

Leader::Leader(
    const SidecarParts& parts,
    const DatasetConfig& config,
    Origin& origin,
    RevisionGate& gate,
    ReadingListener& listener,
    Callbacks callbacks,
    bool keep_revision)
    : parts_(parts),
      config_(config),
      origin_(origin),
      gate_(gate),
      listener_(listener),
      callbacks_(std::move(callbacks)),
      keep_revision_(keep_revision),
      peer_self_(peer_self(parts, config)),
      gate_timer_(parts.loop),
      listing_timer_(parts.loop),
      tasks_(parts.loop),
      preparer_(
          parts,
          config,
          origin,
          peer_self_,
          keep_revision,
          {[this](Preparation prepared) { on_prepared(std::move(prepared)); },
           [this] { on_failed(); },
           [this](Duration waited) { gate_.note_waited(waited); }}) {
    if (parts_.peers != nullptr) {
        desk_ = std::make_unique<PeerDesk>(
            parts_, peer_self_.hello, ManifestGiver{origin.describe(), [this] {
                                                        return preparer_.state();
                                                    }});
    }
    tell_listing();
}

void Leader::on_prepared(Preparation prepared) {
    prepared_ = std::move(prepared);
    marks_ = std::exchange(prepared_->marks, {});
    manifests_listed_ += prepared_->source == Preparation::Source::kListed ? 1 : 0;
    manifests_taken_ += prepared_->source == Preparation::Source::kTaken ? 1 : 0;
    if (desk_ != nullptr) {
        desk_->giver().offer(prepared_->manifest, prepared_->current);
    }
    settle_revision();
}

void Leader::on_failed() {
    for (const ConnectionId id : std::exchange(waiting_, {})) {
        sessions_.at(id)->refuse(preparer_.error());
    }
    leaves_to_another();
}

// Decides about a finished listing: serves it, lists again, or waits for the operator's pin.
void Leader::settle_revision() {
    gate_timer_.cancel();
    const domain::RevisionId revision = prepared_->manifest->view().revision();
    const TimePoint now = parts_.loop.now();
    switch (gate_.judge(revision, !keep_revision_, now)) {
        case RevisionGate::Verdict::kWait:
            gate_timer_.run_at(gate_.waits_until(), [this] { settle_revision(); });
            return;
        case RevisionGate::Verdict::kListAgain:
            list_again();
            return;
        case RevisionGate::Verdict::kGo:
        case RevisionGate::Verdict::kChanged:
            begin_serving(std::move(*std::exchange(prepared_, std::nullopt)));
            if (gate_.has_changed()) {
                callbacks_.changed();
            }
            return;
    }
}

void Leader::list_again() {
    log::warning(
        "another rank's listing has a different revision; listing again",
        {{"dataset", config_.name},
         {"revision", domain::to_string(prepared_->manifest->view().revision())}});
    // Nothing was stored yet; a failed seal only costs a scan at the next open.
    [[maybe_unused]] const auto closed = prepared_->store->close();
    prepared_.reset();
    if (desk_ != nullptr) {
        desk_->giver().offer(nullptr, {});
    }
    preparer_.list_again(gate_.pinned());
}

void Leader::begin_serving(Preparation prepared) {
    warn_of_large_samples(config_, prepared.manifest->view());
    served_ = std::make_unique<ServedDataset>(
        parts_, config_, origin_, std::move(prepared), grant_, weights_, callbacks_.forbidden);
    requests_ = std::make_unique<ClientRequests>(parts_, config_, *served_, listener_);
    if (desk_ != nullptr) {
        served_->join_peers(peer_self_);
        served_->set_group(peers_);
        desk_->serve(*served_);
    }
    listing_timer_.cancel();
    admit_waiting();
}

void Leader::on_pin() {
    if (prepared_) {
        settle_revision();
    } else if (served_ != nullptr) {
        admit_waiting();
    }
}

const domain::ManifestView* Leader::manifest() const {
    if (prepared_) {
        return &prepared_->manifest->view();
    }
    return served_ == nullptr ? nullptr : &served_->manifest();
}

control::ManifestState Leader::state() const {
    return served_ != nullptr       ? control::ManifestState::kReady
           : preparer_.has_failed() ? control::ManifestState::kFailed
                                    : control::ManifestState::kListing;
}

void Leader::attach(Session& session) {
    sessions_[session.id()] = &session;
    if (served_ != nullptr) {
        admit(session);
    } else if (preparer_.has_failed() && !leaves_to_another()) {
        session.refuse(preparer_.error());
    } else {
        waiting_.insert(session.id());
        session.send_listing(preparer_.objects_listed());
    }
}

// Whether another sidecar shall lead, because the origin denied us the listing. Our next attempt to
// list may be 30 s away.
bool Leader::leaves_to_another() {
    const Error error = preparer_.error();
    return error.code == ErrorCode::kForbidden && callbacks_.forbidden(error);
}

// Our RevisionGate only holds back our own pod's trainers; the sidecars of other pods hold back
// their own trainers.
void Leader::admit(Session& session) {
    const bool may_read = session.hello().relay ||
                          gate_.judge(served_->manifest().revision(), false, parts_.loop.now()) ==
                              RevisionGate::Verdict::kGo;
    if (may_read) {
        requests_->welcome(session);
        return;
    }
    waiting_.insert(session.id());
    tell_listing();
}

void Leader::admit_waiting() {
    for (const ConnectionId id : std::exchange(waiting_, {})) {
        admit(*sessions_.at(id));
    }
}

void Leader::tell_listing() {
    for (const ConnectionId id : waiting_) {
        sessions_.at(id)->send_listing(preparer_.objects_listed());
    }
    preparer_.look();
    listing_timer_.run_in(kListingInterval, [this] { tell_listing(); });
}

void Leader::on_frame(Session& session, Frame frame) {
    if (requests_ != nullptr) {
        requests_->on_frame(session, std::move(frame));
    } else {
        session.refuse({ErrorCode::kInvalidArgument, "frame sent before the welcome"});
    }
}

void Leader::detach(Session& session) {
    waiting_.erase(session.id());
    sessions_.erase(session.id());
    if (requests_ != nullptr) {
        requests_->leave(session);
    }
}

void Leader::set_grant(EngineGrant grant, JobWeights weights) {
    grant_ = grant;
    weights_ = std::move(weights);
    if (served_ != nullptr) {
        served_->set_grant(grant);
        served_->engine().importance().set_weights(weights_);
    }
}

void Leader::set_peers(const control::PeerGroup& group) {
    peers_ = group;
    if (desk_ == nullptr) {
        return;
    }
    desk_->set_group(group.members);
    preparer_.set_group(group.members);
    if (served_ != nullptr) {
        served_->set_group(group);
    }
}

LeaderStatus Leader::status() const {
    LeaderStatus status;
    status.leader = true;
    status.manifest_state = state();
    status.objects_listed = preparer_.objects_listed();
    status.error = preparer_.error().message;
    status.granted_bytes = grant_.resident_bytes;
    status.marks = marks_;
    status.manifests_listed = manifests_listed_;
    status.manifests_taken = manifests_taken_;
    if (desk_ != nullptr) {
        status.peer_address = parts_.peer_address;
        status.peer_generation = peer_self_.hello.generation;
    }
    if (served_ != nullptr) {
        served_->tell(status);
    }
    return status;
}

void Leader::retire(std::function<void()> on_idle) {
    preparer_.stop();
    gate_timer_.cancel();
    listing_timer_.cancel();
    for (const auto& [id, session] : sessions_) {
        session->hang_up();
    }
    sessions_.clear();
    waiting_.clear();
    if (desk_ != nullptr) {
        desk_->close();
    }
    if (served_ != nullptr) {
        requests_->forget_all();
        served_->retire(std::move(on_idle));
    } else {
        tasks_.post(std::move(on_idle));
    }
}

void Leader::close_store() {
    if (served_ != nullptr) {
        served_->drop_unfinished();
    }
    NodeStore* const store = prepared_            ? prepared_->store.get()
                             : served_ == nullptr ? nullptr
                                                  : &served_->store();
    if (const auto closed = store == nullptr ? Status{} : store->close(); !closed) {
        log::warning(
            "the store did not close cleanly",
            {{"dataset", config_.name}, {"error", closed.error().message}});
    }
}

}  // namespace stoker::sidecar
