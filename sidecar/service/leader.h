#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "common/runtime/event_loop.h"
#include "sidecar/config/sidecar_config.h"
#include "sidecar/core/revision_gate.h"
#include "sidecar/origin/origin.h"
#include "sidecar/service/client_requests.h"
#include "sidecar/service/peer_desk.h"
#include "sidecar/service/preparer.h"
#include "sidecar/service/served_dataset.h"
#include "sidecar/service/session.h"
#include "sidecar/service/sidecar_parts.h"

namespace stoker::sidecar {

// Leads one node directory for its sessions: prepares their dataset (Preparer), lets them wait for
// it and for their attempt's pin, then welcomes them (ServedDataset, ClientRequests). The caller
// holds the directory's lock while this lives. Use it on the loop's thread.
//
// Sessions that wait are sent the preparation's errors; preparation is retried with back-off for as
// long as it fails. Our own trainers' sessions wait until RevisionGate permits the revision, those
// of other pods only while we may still list again.
class Leader final : public SessionHandler {
public:
    struct Callbacks {
        // The origin denies our credentials for the listing or for several reads in a row; may be
        // called again. True: another sidecar shall lead; retire() follows.
        std::function<bool(const Error&)> forbidden;
        std::function<void()> changed;  // the gate denies our trainers the revision that we listed
    };

    // `keep_revision`: clients use the existing manifest, so its revision stays current. `gate` and
    // `listener` must outlive this object; `listener` receives events of our own pod's sessions.
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

    // Stops preparing. The origin and the pool must have finished our work before (Sidecar ensures
    // it).
    ~Leader() override = default;

    void attach(Session& session) override;
    void on_frame(Session& session, Frame frame) override;
    void detach(Session& session) override;

    void set_grant(EngineGrant grant, JobWeights weights);

    // Sets the nodes that share the dataset's samples; may be called before and while serving.
    void set_peers(const control::PeerGroup& group);

    // Answers our peers. nullptr: no peer network.
    [[nodiscard]] PeerDesk* peer_desk() const { return desk_.get(); }

    // Call it when the gate has received another pin.
    void on_pin();

    // The listing that is served, or will be once the gate opens. nullptr: not listed yet.
    [[nodiscard]] const domain::ManifestView* manifest() const;

    [[nodiscard]] control::ManifestState state() const;

    [[nodiscard]] LeaderStatus status() const;

    // Number of samples in the served revision; 0: no revision is served yet.
    [[nodiscard]] std::uint64_t sample_count() const {
        return served_ == nullptr ? 0 : served_->manifest().sample_count();
    }

    // Stops preparing, even in the middle of a listing.
    void stop_preparing() { preparer_.stop(); }

    // Ends every session and starts nothing more. Calls `on_idle` when the origin and the pool have
    // finished our work and this object may be destroyed.
    void retire(std::function<void()> on_idle);

    // Seals and syncs the store; logs errors. The last call.
    void close_store();

private:
    void on_prepared(Preparation prepared);
    void on_failed();
    void settle_revision();
    void list_again();
    void begin_serving(Preparation prepared);
    void admit(Session& session);
    void admit_waiting();
    bool leaves_to_another();
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
    control::PeerGroup peers_;
    PeerSelf peer_self_;
    std::map<ConnectionId, Session*> sessions_;  // attached, in any state
    std::set<ConnectionId> waiting_;             // sessions that wait for the manifest or the gate
    std::optional<Preparation> prepared_;        // set while it waits for the gate
    domain::ManifestMarks marks_;                // of the listing, if it is pinned
    std::uint64_t manifests_listed_ = 0;
    std::uint64_t manifests_taken_ = 0;
    LoopTimer gate_timer_;
    LoopTimer listing_timer_;
    LoopTasks tasks_;
    std::unique_ptr<ServedDataset> served_;
    std::unique_ptr<ClientRequests> requests_;  // set together with served_
    std::unique_ptr<PeerDesk> desk_;            // nullptr: no peer network
    Preparer preparer_;  // last: joined before the members that it uses are destroyed
};

}  // namespace stoker::sidecar
