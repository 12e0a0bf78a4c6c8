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
#include "sidecar/service/revision_marks.h"
#include "sidecar/service/session.h"
#include "sidecar/service/trainer_totals.h"
#include "wire/control/orders.h"

namespace stoker::sidecar {

enum class Role : std::uint8_t { kSeeking, kLeading, kFollowing };

// One dataset of this sidecar on this node. While we hold the directory's lock, we lead: we fetch
// and write. Otherwise we follow the sidecar that holds it. Sessions opened under another leader
// stay relayed when we take the lead, to our own socket: a takeover needs no separate code path.
//
// For another namespace's dataset (config.guest) we never lead, lock or write: we follow through
// our namespace's socket. Without a key of our own, our clients wait for a leader and are never
// sent to the origin. Use it on the loop's thread.
class DatasetNode final : public SessionHandler {
public:
    DatasetNode(const SidecarParts& parts, const DatasetConfig& config, Origin& origin);
    DatasetNode(const DatasetNode&) = delete;
    DatasetNode& operator=(const DatasetNode&) = delete;

    void attach(Session& session) override;
    void on_frame(Session& session, Frame frame) override;
    void detach(Session& session) override;

    // Applies the operator's grant and the jobs' weights.
    void set_grant(EngineGrant grant, JobWeights weights) {
        lead_.set_grant(grant, std::move(weights));
    }

    // Sets the nodes that share the dataset's samples.
    void set_peers(const control::PeerGroup& group) { lead_.set_peers(group); }

    // Sets the revision that all ranks of our attempt read.
    void set_pin(const control::RevisionPin& pin);

    // The revision that our trainers read, or will read once it is pinned. nullopt: not known yet.
    [[nodiscard]] std::optional<domain::RevisionId> read_revision() const;

    // Digests of read_revision()'s manifest, for the operator's pin, if we follow; nullptr: not
    // known yet.
    [[nodiscard]] const domain::ManifestMarks* followed_marks() const;

    // Whether our trainers wait, or will wait, for the operator's pin.
    [[nodiscard]] bool awaits_pin() const {
        return config_.pinned && parts_.operator_grants && !pin_ && !gate_.has_given();
    }

    // Set while our trainers cannot read the pinned revision, so that the attempt cannot go on.
    [[nodiscard]] const std::optional<control::OriginChange>& origin_change() const {
        return origin_change_;
    }

    // Sets the operator's measurement request; a new id means a new measurement.
    void set_probe(const local::Probe& probe) { totals_.set_probe(probe); }

    [[nodiscard]] const EngineGrant& grant() const { return lead_.grant(); }

    [[nodiscard]] const DatasetConfig& config() const { return config_; }

    [[nodiscard]] Role role() const {
        return leader() != nullptr ? Role::kLeading : follows_ ? Role::kFollowing : Role::kSeeking;
    }

    // nullptr unless we lead.
    [[nodiscard]] Leader* leader() const { return lead_.leader(); }

    // Whether our pod may read a dataset led by another sidecar; nullopt: not checked.
    [[nodiscard]] std::optional<AccessProof::State> permission() const { return proof_.state(); }

    // Whether our trainers may start. False only for a guest without a key of its own, until a
    // leader from the dataset owner's namespace has answered.
    [[nodiscard]] bool is_ready() const;

    // Whether trainers get samples now, from us or through the leader.
    [[nodiscard]] bool is_serving() const;

    // False while we lead, no other sidecar is connected, and no grant of the operator is valid. A
    // follower stands by for the leader's clients.
    [[nodiscard]] bool is_in_use() const;

    // Totals reported by our trainers so far.
    [[nodiscard]] JobTotals job() const { return totals_.sum(); }

    // The totals of job(), by kind of access; see TrainerTotals.
    [[nodiscard]] const std::map<std::string_view, AccessTotals>& reads_by_access() const {
        return totals_.by_access();
    }

    // Fetch totals of the leads that we have ended, so that the totals of a report never fall.
    [[nodiscard]] const control::DatasetReport& past_leads() const { return lead_.past_leads(); }

    // The reason why there is no leader, no answer or no permission; empty: no problem.
    [[nodiscard]] std::string error() const;

    // How long a process that does not answer has held the directory's lock; zero otherwise.
    [[nodiscard]] Duration leader_silence() const;

    // First step of a stop: ends other sidecars' sessions and the listing. The others look for
    // another leader once we release the lock.
    void stop();

    // Last step of a stop: seals the store, then releases the lock.
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
    bool follows_ = false;  // another sidecar leads, or should lead
    std::string error_;
    TrainerTotals totals_;
    RevisionGate gate_;
    std::optional<control::RevisionPin> pin_;
    std::optional<control::OriginChange> origin_change_;
    LoopTimer gate_timer_;
    LoopTimer seek_timer_;
    std::optional<TimePoint> lost_at_;  // when a connection to a leader last ended
    std::map<ConnectionId, std::unique_ptr<Relay>> relays_;
    std::map<ConnectionId, std::unique_ptr<Relay>> parting_;  // relays whose clients have hung up
    Leadership lead_;
    LeaderWatch watch_;  // runs while we follow
    AccessProof proof_;  // for datasets that another sidecar leads
    RevisionMarks marks_;
    bool told_silence_ = false;
    bool was_led_ = false;         // whether a leader has ever answered
    TimePoint told_to_wait_at_{};  // when a guest's clients were last told to wait
    LoopTasks tasks_;
};

}  // namespace stoker::sidecar
