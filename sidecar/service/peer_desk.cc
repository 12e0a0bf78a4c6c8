#include "sidecar/service/peer_desk.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "common/log/log.h"
#include "sidecar/core/sampling/loss_code.h"

namespace stoker::sidecar {

PeerDesk::PeerDesk(const SidecarParts& parts, PeerHello ours, ManifestGiver giver)
    : parts_(parts),
      ours_(std::move(ours)),
      giver_(std::move(giver)),
      stuck_timer_(parts.loop),
      tasks_(parts.loop) {
    cut_stuck();
}

PeerDesk::~PeerDesk() {
    close();
}

void PeerDesk::serve(ServedDataset& served) {
    served_ = &served;
    ours_.revision = served.manifest().revision();
    served.set_on_peer_reply([this](const FetchReply& reply) { return on_reply(reply); });
    anchor();
    settle_all();
}

void PeerDesk::set_group(const std::vector<control::PeerMember>& members) {
    members_ = members;
    anchor();
    settle_all();
}

void PeerDesk::settle_all() {
    std::vector<PeerSession*> sessions;
    for (const auto& [session, guest] : guests_) {
        sessions.push_back(session);
    }
    for (PeerSession* const session : sessions) {
        settle(*session);
    }
}

// Keeps one connection of the peers' party open for as long as there are peers, so that the party's
// shares do not come and go with each sample.
void PeerDesk::anchor() {
    const bool has_peers = members_.size() > 1 && served_ != nullptr;
    if (has_peers && !anchor_) {
        anchor_ = parts_.connection_ids.next();
        served_->engine().fetch().on_connect(*anchor_, std::nullopt, kPeerParty);
    } else if (!has_peers && anchor_) {
        served_->apply(served_->engine().fetch().on_disconnect(*anchor_, parts_.loop.now()));
        anchor_.reset();
    }
}

void PeerDesk::attach(PeerSession& session) {
    Guest& guest = guests_[&session];
    guest.moved_at = parts_.loop.now();
    guest.wants_manifest = session.hello().revision == domain::RevisionId{};
    settle(session);
}

// A peer whose lead is newer than the one that we know is a member, too: the operator has not told
// us of it yet.
PeerDesk::Standing PeerDesk::standing(const PeerHello& hello) const {
    const auto known = std::ranges::find(members_, hello.node, &control::PeerMember::node);
    if (known == members_.end() || hello.node == ours_.node) {
        return Standing::kNotYet;
    }
    return hello.generation >= known->generation ? Standing::kMember : Standing::kOld;
}

void PeerDesk::settle(PeerSession& session) {
    Guest& guest = guests_.at(&session);
    const Standing found = standing(session.hello());
    if (served_ == nullptr && !guest.wants_manifest) {
        return;
    }
    if (!guest.wants_manifest && session.hello().revision != ours_.revision) {
        end(session, PeerRefusalReason::kOtherRevision);
    } else if (found == Standing::kOld || (found == Standing::kNotYet && guest.is_welcome)) {
        end(session, PeerRefusalReason::kNotMember);
    } else if (found == Standing::kMember && !guest.is_welcome) {
        guest.is_welcome = true;
        session.welcome(ours_);
    }
}

void PeerDesk::end(PeerSession& session, PeerRefusalReason reason) {
    detach(session);
    session.refuse(reason);
}

void PeerDesk::detach(PeerSession& session) {
    guests_.erase(&session);
    for (auto& [id, ask] : asks_) {
        if (ask.session == &session) {
            ask.session = nullptr;
            leave_later(id);
        }
    }
}

void PeerDesk::close() {
    while (!guests_.empty()) {
        end(*guests_.begin()->first, PeerRefusalReason::kGoingAway);
    }
    stuck_timer_.cancel();
}

void PeerDesk::on_frame(PeerSession& session, const PeerMessage& message) {
    if (guests_.at(&session).wants_manifest) {
        if (!give_manifest(session, message)) {
            end_broken(session);
        }
        return;
    }
    if (!is_valid(guests_.at(&session), message)) {
        end_broken(session);
    } else if (const auto* ask = std::get_if<PeerAsk>(&message)) {
        take(session, *ask);
    } else {
        hear(session, std::get<PeerLosses>(message));
    }
}

// Whether the message asks for samples or reports losses, names only samples that exist, and no
// more of them than a peer may ask for.
bool PeerDesk::is_valid(const Guest& guest, const PeerMessage& message) const {
    const auto exist = [count = served_->manifest().sample_count()](const auto& samples) {
        return std::ranges::all_of(samples, [count](auto sample) { return sample < count; });
    };
    if (const auto* ask = std::get_if<PeerAsk>(&message)) {
        return guest.asks + ask->samples.size() <= kAsksMax &&
               guest.older_refusals + guest.refusals <= kRefusalsMax && exist(ask->samples);
    }
    const auto* losses = std::get_if<PeerLosses>(&message);
    return losses != nullptr && std::ranges::all_of(losses->reports, [&](const auto& report) {
               return exist(report.samples);
           });
}

// Passes losses to the samplers; ignores losses of jobs that do not read here.
void PeerDesk::hear(PeerSession& session, const PeerLosses& losses) {
    SamplerService& samplers = served_->engine().samplers();
    for (const PeerLosses::Report& report : losses.reports) {
        const auto epoch = samplers.shared_epoch(losses.job);
        if (!epoch ||
            !guests_.at(&session).losses.admit(
                losses.job, *epoch, report.samples.size(), served_->manifest().sample_count())) {
            return;
        }
        std::vector<float> values(report.codes.size());
        std::ranges::transform(report.codes, values.begin(), LossCode::loss_of);
        samplers.on_losses_elsewhere(losses.job, losses.epoch, report.samples, values);
    }
}

void PeerDesk::end_broken(PeerSession& session) {
    log::warning("a peer broke the protocol", {{"node", session.hello().node}});
    end(session, PeerRefusalReason::kFailed);
}

// Answers a request for the manifest. False: too much for this peer is unsent; a correct peer asks
// for the next pieces only when it has received some.
bool PeerDesk::give_manifest(PeerSession& session, const PeerMessage& message) {
    const auto* ask = std::get_if<PeerManifestAsk>(&message);
    if (ask == nullptr || Bytes{session.unsent_bytes()} >= kUnsentMax) {
        return false;
    }
    guests_.at(&session).moved_at = parts_.loop.now();
    const bool is_old = served_ != nullptr && !served_->changed_key().empty();
    session.send(giver_.answer(*ask, is_old, parts_.loop.clock().wall_now()));
    return true;
}

void PeerDesk::take(PeerSession& session, const PeerAsk& ask) {
    const FetchEngine& engine = std::as_const(served_->engine()).fetch();
    for (const SampleIndex sample : ask.samples) {
        const bool is_own = engine.placement() == nullptr || engine.placement()->is_own(sample);
        if ((is_own && !ask.only_if_there) || is_there(sample)) {
            demand(session, ask.request_id, sample);
        } else {
            refuse({&session, ask.request_id, sample}, PeerRefusalReason::kNotMine);
        }
    }
}

// Whether the sample is stored, or its fetch from the origin is in flight. A fetch from a peer does
// not count: that peer may be the one that asks.
bool PeerDesk::is_there(SampleIndex sample) const {
    const SampleRecord& record = std::as_const(served_->engine()).fetch().sample(sample);
    return record.state == SampleState::kStored ||
           (record.state == SampleState::kFetching && !record.from_peer);
}

void PeerDesk::demand(PeerSession& session, std::uint64_t request_id, SampleIndex sample) {
    if (served_->manifest().sample(domain::SampleId{sample}).size_bytes >
        parts_.peers->payload_max()) {
        refuse({&session, request_id, sample}, PeerRefusalReason::kFailed);
        return;
    }
    const ConnectionId id = parts_.connection_ids.next();
    FetchEngine& engine = served_->engine().fetch();
    asks_[id] = {&session, request_id, sample};
    Guest& guest = guests_.at(&session);
    guest.moved_at = guest.asks == 0 ? parts_.loop.now() : guest.moved_at;
    ++guest.asks;
    engine.on_connect(id, std::nullopt, kPeerParty);
    served_->fetch_for_peer(session.hello().node, id, 1, sample);
}

// The engine's answer to one ask. False: the reply is not for us.
bool PeerDesk::on_reply(const FetchReply& reply) {
    const auto found = asks_.find(reply.connection);
    if (found == asks_.end()) {
        return false;
    }
    const Ask& ask = found->second;
    if (ask.session == nullptr || reply.outcomes.empty()) {
        return true;
    }
    if (reply.outcomes.front() == FetchOutcome::kReady) {
        guests_.at(ask.session).ready.push_back(reply.connection);
        send_ready(*ask.session);
    } else {
        refuse(ask, PeerRefusalReason::kFailed);
        leave_later(reply.connection);
    }
    return true;
}

void PeerDesk::send_ready(PeerSession& session) {
    Guest& guest = guests_.at(&session);
    while (!guest.ready.empty() && Bytes{session.unsent_bytes()} + guest.reading < kUnsentMax) {
        const ConnectionId id = guest.ready.front();
        guest.ready.pop_front();
        read(id);
    }
}

void PeerDesk::read(ConnectionId id) {
    const Ask& ask = asks_.at(id);
    guests_.at(ask.session).reading += served_->engine().fetch().sizes().of(ask.sample);
    auto record = std::make_shared<Result<RecordBytes>>(fail(ErrorCode::kInternal, ""));
    served_->on_pool(
        [this, record, sample = ask.sample] {
            *record = served_->store().read(domain::SampleId{sample});
        },
        [this, id, record] { on_read(id, record); });
}

void PeerDesk::on_read(ConnectionId id, const std::shared_ptr<Result<RecordBytes>>& record) {
    const auto found = asks_.find(id);
    if (found == asks_.end() || found->second.session == nullptr) {
        return;
    }
    Ask& ask = found->second;
    PeerSession& session = *ask.session;
    Guest& guest = guests_.at(&session);
    guest.reading -= served_->engine().fetch().sizes().of(ask.sample);
    guest.moved_at = parts_.loop.now();
    if (*record) {
        const auto bytes = std::shared_ptr<const RecordBytes>{record, &**record};
        session.send(
            {encode_peer_head(PeerAnswer{ask.request_id, ask.sample, bytes->payload_crc32c}),
             {bytes->payload(), bytes}});
        leave_later(id);
    } else if (!std::exchange(ask.is_second, true)) {
        // On the second request, the engine verifies the sample and fetches it if it is damaged.
        served_->fetch_for_peer(session.hello().node, id, 2, ask.sample);
    } else {
        refuse(ask, PeerRefusalReason::kFailed);
        leave_later(id);
    }
    send_ready(session);
}

void PeerDesk::refuse(const Ask& ask, PeerRefusalReason reason) {
    Guest& guest = guests_.at(ask.session);
    const std::uint64_t sent = ask.session->sent_bytes();
    if (ask.session->unsent_bytes() <= sent - guest.refused_from) {  // all before that are taken
        guest.older_refusals = std::exchange(guest.refusals, 0);
        guest.refused_from = sent;
    }
    ++guest.refusals;
    ask.session->send({encode_peer_head(PeerRefusal{ask.request_id, ask.sample, reason}), {}});
}

void PeerDesk::on_drained(PeerSession& session) {
    guests_.at(&session).moved_at = parts_.loop.now();
    send_ready(session);
}

// Deferred, because the engine may be executing effects, which must not be nested.
void PeerDesk::leave_later(ConnectionId id) {
    leaving_.push_back(id);
    if (leaving_.size() == 1) {
        tasks_.post([this] { leave_now(); });
    }
}

void PeerDesk::leave_now() {
    for (const ConnectionId id : std::exchange(leaving_, {})) {
        const auto ask = asks_.extract(id);
        if (ask.empty()) {
            continue;  // it has left already
        }
        if (const auto guest = guests_.find(ask.mapped().session); guest != guests_.end()) {
            --guest->second.asks;
        }
        served_->apply(served_->engine().fetch().on_disconnect(id, parts_.loop.now()));
    }
}

// Ends the sessions of peers that do not receive the bytes waiting for them.
void PeerDesk::cut_stuck() {
    std::vector<PeerSession*> stuck;
    for (auto& [session, guest] : guests_) {
        const std::size_t unsent = session->unsent_bytes();
        guest.moved_at = unsent < guest.unsent_seen ? parts_.loop.now() : guest.moved_at;
        guest.unsent_seen = unsent;
        const bool has_more = !guest.ready.empty() || (guest.wants_manifest && unsent > 0);
        if (has_more && parts_.loop.now() - guest.moved_at > kStuckMax) {
            stuck.push_back(session);
        }
    }
    for (PeerSession* const session : stuck) {
        end(*session, PeerRefusalReason::kFailed);
    }
    stuck_timer_.run_in(kStuckMax, [this] { cut_stuck(); });
}

}  // namespace stoker::sidecar
