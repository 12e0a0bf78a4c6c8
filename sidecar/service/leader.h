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
#include "sidecar/service/client_requests.h"
#include "sidecar/service/preparer.h"
#include "sidecar/service/served_dataset.h"
#include "sidecar/service/session.h"
#include "sidecar/service/sidecar_parts.h"

namespace stoker::sidecar {

// Leads one node directory for its sessions: has what they read prepared (Preparer), lets them wait
// for it and for their attempt's pin, then welcomes them to it (ServedDataset, ClientRequests). The
// caller holds the directory's lock as long as this lives. Belongs to the loop's thread.
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
    void tell_listing();

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
    std::optional<Preparation> prepared_;        // waits for the gate
    domain::ManifestMarks marks_;                // of what is listed, where its revision is pinned
    LoopTimer gate_timer_;
    LoopTimer listing_timer_;
    LoopTasks tasks_;
    std::unique_ptr<ServedDataset> served_;
    std::unique_ptr<ClientRequests> requests_;  // set with served_
    Preparer preparer_;  // last: joined before anything that it uses goes away
};

}  // namespace stoker::sidecar
