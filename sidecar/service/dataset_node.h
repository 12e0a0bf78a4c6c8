#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "sidecar/service/access_proof.h"
#include "sidecar/service/leader_watch.h"
#include "sidecar/service/leadership.h"
#include "sidecar/service/relay.h"
#include "sidecar/service/session.h"
#include "sidecar/service/trainer_totals.h"
#include "wire/control/orders.h"

namespace stoker::sidecar {

enum class Role : std::uint8_t { kSeeking, kLeading, kFollowing };

// One dataset of this sidecar on this node, whoever leads its directory: we, when we get its lock,
// or the sidecar that has it. Sessions that came while somebody else led stay relayed when the lead
// falls to us; they are carried to our own socket then, so that taking over has no path of its own.
//
// For another namespace's dataset (config.guest) we never lead, lock or write: we follow through
// our namespace's socket. Where we have no key of our own either, our clients wait for a leader and
// are never sent to the origin. Belongs to the loop's thread.
class DatasetNode final : public SessionHandler {
public:
    DatasetNode(const SidecarParts& parts, const DatasetConfig& config, Origin& origin);
    DatasetNode(const DatasetNode&) = delete;
    DatasetNode& operator=(const DatasetNode&) = delete;

    void attach(Session& session) override;
    void on_frame(Session& session, Frame frame) override;
    void detach(Session& session) override;

    // The operator's orders.
    void set_grant(EngineGrant grant, JobWeights weights) {
        lead_.set_grant(grant, std::move(weights));
    }

    // All ranks of our attempt read this revision.
    void set_pin(const control::RevisionPin& pin);

    // The revision that our trainers read, or will once it is pinned. nullopt: not known yet.
    [[nodiscard]] std::optional<domain::RevisionId> read_revision() const;

    // Our trainers wait for the operator's pin, or will.
    [[nodiscard]] bool awaits_pin() const {
        return config_.pinned && parts_.operator_grants && !pin_ && !gate_.has_given();
    }

    // Set while our trainers cannot read the pinned revision: the attempt cannot go on.
    [[nodiscard]] const std::optional<control::OriginChange>& origin_change() const {
        return origin_change_;
    }

    // The operator asks our trainers to measure; another id than before is another measurement.
    void set_probe(const local::Probe& probe) { totals_.set_probe(probe); }

    [[nodiscard]] const EngineGrant& grant() const { return lead_.grant(); }

    [[nodiscard]] const DatasetConfig& config() const { return config_; }

    [[nodiscard]] Role role() const {
        return leader() != nullptr ? Role::kLeading : follows_ ? Role::kFollowing : Role::kSeeking;
    }

    // nullptr unless we lead.
    [[nodiscard]] Leader* leader() const { return lead_.leader(); }

    // May our pod read what another sidecar leads? nullopt: nobody asked.
    [[nodiscard]] std::optional<AccessProof::State> permission() const { return proof_.state(); }

    // May our trainers start? False only of a guest without a key of its own, until a leader of the
    // dataset's owner has answered.
    [[nodiscard]] bool is_ready() const;

    // Can samples be had, from us or through the leader?
    [[nodiscard]] bool is_serving() const;

    // False while we lead, no other sidecar is connected, and no grant of the operator's is valid.
    // While another sidecar leads we stand by for those who are connected there.
    [[nodiscard]] bool is_in_use() const;

    // Totals that our trainers told so far.
    [[nodiscard]] JobTotals job() const { return totals_.sum(); }

    // Fetches of our leads that have ended, so that the totals of a report never fall.
    [[nodiscard]] const control::DatasetReport& past_leads() const { return lead_.past_leads(); }

    // The reason why nobody leads, nobody answers, or we may not read; or empty.
    [[nodiscard]] std::string error() const;

    // How long the directory's lock has been held by somebody who does not answer; zero otherwise.
    [[nodiscard]] Duration leader_silence() const;

    // First step of a stop: no sessions from other sidecars, no listing. The others look for
    // another leader once we have let the lock go.
    void stop();

    // Last step of a stop: seals the store, then lets the lock go.
    void close();

private:
    void seek();
    void seek_later(Duration delay);
    void follow();
    [[nodiscard]] std::uint64_t sample_count(const Session& session) const;
    void on_lost();
    void on_watch();
    void stand_in();
    void admit_relays();
    void admit_relays_soon();
    void admit(Relay& relay, domain::RevisionId revision);
    void judge_pin();
    [[nodiscard]] control::OriginChange find_change() const;
    void tell_silence();
    [[nodiscard]] bool is_leaderless() const;
    [[nodiscard]] std::string no_leader() const;
    void part(ConnectionId id, std::unique_ptr<Relay> relay);
    void ask_for_patience();
    [[nodiscard]] bool must_wait() const;
    [[nodiscard]] Result<LeaderConnection> connect_to_leader() const;

    SidecarParts parts_;
    const DatasetConfig& config_;
    Origin& origin_;
    bool follows_ = false;  // somebody else has the lead, or is to take it
    std::string error_;
    TrainerTotals totals_;
    RevisionGate gate_;
    std::optional<control::RevisionPin> pin_;
    std::optional<control::OriginChange> origin_change_;
    LoopTimer gate_timer_;
    LoopTimer seek_timer_;
    std::optional<TimePoint> lost_at_;  // when a leader's connection ended last
    std::map<ConnectionId, std::unique_ptr<Relay>> relays_;
    std::map<ConnectionId, std::unique_ptr<Relay>> parting_;  // their clients have hung up
    Leadership lead_;
    LeaderWatch watch_;  // runs while we follow
    AccessProof proof_;  // for what another sidecar leads
    bool told_silence_ = false;
    bool was_led_ = false;         // a leader has answered
    TimePoint told_to_wait_at_{};  // the clients that a guest lets wait
    LoopTasks tasks_;
};

}  // namespace stoker::sidecar
