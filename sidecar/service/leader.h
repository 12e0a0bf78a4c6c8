#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "common/runtime/loop_tasks.h"
#include "sidecar/config/sidecar_config.h"
#include "sidecar/core/revision_gate.h"
#include "sidecar/origin/origin.h"
#include "sidecar/service/client_rooms.h"
#include "sidecar/service/party_turns.h"
#include "sidecar/service/preparer.h"
#include "sidecar/service/served_dataset.h"
#include "sidecar/service/session.h"
#include "sidecar/service/sidecar_parts.h"

namespace stoker::sidecar {

// Leads one node directory for its sessions: has what they read prepared (Preparer), lets them wait
// for it and for the pin of their attempt, then passes what they say to the engine (ServedDataset),
// within bounds (ClientRooms). The caller holds the directory's lock as long as this lives. Belongs
// to the loop's thread.
//
// Failures to prepare are answered to the sessions that wait, and tried again with back-off for
// ever. Our own trainers' sessions wait as long as the gate says so; those of other pods wait only
// while we may still list again.
class Leader final : public SessionHandler {
public:
    struct Callbacks {
        // The origin refuses our credentials for the listing, or for one read after the other; may
        // be told again.
        std::function<void(const Error&)> forbidden;
        std::function<void()> changed;  // the gate does not let our trainers read what we listed
    };

    // `keep_revision`: clients are at work on the manifest that is there, so that it stays current.
    // `gate` and `listener` outlive us; the latter hears of our own pod's sessions.
    Leader(
        const SidecarParts& parts,
        const DatasetConfig& config,
        Origin& origin,
        RevisionGate& gate,
        ReadingListener& listener,
        Callbacks callbacks,
        bool keep_revision);
    Leader(const Leader&) = delete;
    Leader& operator=(const Leader&) = delete;

    // Stops preparing. What the origin and the pool still do for us must have ended before (Sidecar
    // sees to it).
    ~Leader() override = default;

    void attach(Session& session) override;
    void on_frame(Session& session, Frame frame) override;
    void detach(Session& session) override;

    void set_grant(EngineGrant grant, JobWeights weights);

    // The gate knows another pin.
    void on_pin();

    // The listing that is served, or will be once the gate lets it. nullptr: nothing is listed yet.
    [[nodiscard]] const domain::ManifestView* manifest() const;

    [[nodiscard]] control::ManifestState state() const;

    [[nodiscard]] LeaderStatus status() const;

    // Samples of the revision that is served; 0: none yet.
    [[nodiscard]] std::uint64_t sample_count() const {
        return served_ == nullptr ? 0 : served_->manifest().sample_count();
    }

    // Ends preparing, which may be in the middle of a listing.
    void stop_preparing() { preparer_.stop(); }

    // Ends every session and starts nothing more. `on_idle`: the origin and the pool do nothing for
    // us any more, so that we may be destroyed.
    void retire(std::function<void()> on_idle);

    // Seals and syncs the store, and logs what goes wrong. The last call.
    void close_store();

private:
    void on_prepared(Preparation prepared);
    void on_failed();
    void settle_revision();
    void list_again();
    void begin_serving(Preparation prepared);
    void admit(Session& session);
    void admit_waiting();
    void welcome(Session& session);
    void tell_listing();
    void reply(const FetchReply& reply);

    void on_fetch(Session& session, std::uint64_t request_id, const local::Fetch& fetch);
    void on_consumed(Session& session, std::uint64_t request_id, const local::Consumed& consumed);
    void on_plan(
        Session& session, std::uint64_t request_id, const local::Plan& plan, UniqueFd memfd);
    void read_plan_of(
        const Session& session, std::uint64_t request_id, const local::Plan& plan, UniqueFd memfd);
    void finish_plan(Session& session, std::uint64_t request_id, Result<StreamPlan> plan);
    void on_sampling(Session& session, std::uint64_t request_id, const local::Message& message);
    void on_begin(
        Session& session,
        std::uint64_t request_id,
        const local::Begin& begin,
        const UniqueFd& memfd);
    void on_draw(Session& session, std::uint64_t request_id, const local::Draw& draw);
    void stop_drawing(ConnectionId connection);
    [[nodiscard]] std::optional<Error> check_ids(const std::vector<std::uint64_t>& ids) const;
    [[nodiscard]] std::optional<Error> check_fetch(
        const Session& session, const local::Fetch& fetch) const;
    [[nodiscard]] bool is_last_of_stream(const Session& session) const;
    [[nodiscard]] static Client client_of(const Session& session);

    // Only while we serve.
    [[nodiscard]] DatasetEngine& engine() const { return served_->engine(); }

    SidecarParts parts_;
    const DatasetConfig& config_;
    Origin& origin_;
    RevisionGate& gate_;
    ReadingListener& listener_;
    Callbacks callbacks_;
    bool keep_revision_;
    EngineGrant grant_;
    JobWeights weights_;
    std::map<ConnectionId, Session*> sessions_;  // attached, in whatever state
    std::set<ConnectionId> waiting_;             // for the manifest, or for the gate
    std::set<ConnectionId> welcomed_;            // known to the engine
    std::map<ConnectionId, StreamId> draws_by_;  // those that draw under a contract
    ClientRooms rooms_;
    PartyTurns plan_turns_;
    std::optional<Preparation> prepared_;  // waits for the gate
    domain::ManifestMarks marks_;          // of what is listed, where its revision is pinned
    LoopTimer gate_timer_;
    LoopTimer listing_timer_;
    LoopTasks tasks_;
    std::unique_ptr<ServedDataset> served_;
    Preparer preparer_;  // last: joined before anything that it uses goes away
};

}  // namespace stoker::sidecar
