#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>

#include "common/runtime/event_loop.h"
#include "sidecar/core/stall_detector.h"
#include "sidecar/service/access_proof.h"
#include "sidecar/service/manifest_taker.h"
#include "sidecar/service/preparation.h"
#include "sidecar/service/sidecar_parts.h"

namespace stoker::sidecar {

// Runs prepare_dataset() for a leader on a worker of its own, and again with back-off until it
// succeeds. If the operator pins the dataset's revision and the leader has peers, one node of their
// group lists, and the others take its manifest (ManifestTaker) once their own key, or their job's,
// has read the dataset. Use it on the loop's thread; the destructor stops the work, even in the middle of a
// listing.
class Preparer {
public:
    struct Callbacks {
        std::function<void(Preparation)> ready;
        std::function<void()> failed;  // cause: error(); it will be retried
        // No group came for `waited`; the origin is listed here.
        std::function<void(Duration waited)> no_group;
    };

    // Starts at once. `self`: our lead, for peers. `keep_revision`: clients use the existing manifest.
    Preparer(
        const SidecarParts& parts,
        const DatasetConfig& config,
        Origin& origin,
        const PeerSelf& self,
        bool keep_revision,
        Callbacks callbacks);
    Preparer(const Preparer&) = delete;
    Preparer& operator=(const Preparer&) = delete;
    ~Preparer();

    // Lists the origin again, even if our own attempt has a listing; or takes this revision from a
    // peer.
    void list_again(std::optional<domain::RevisionId> pinned);

    void set_group(const std::vector<control::PeerMember>& members);

    // The answer to peers that ask for the manifest before it is ready.
    [[nodiscard]] PeerManifestWait state() const;

    // Stops the work and waits for its end. No callback follows.
    void stop();

    [[nodiscard]] std::uint64_t objects_listed() const { return *objects_listed_; }

    // Preparation failed and waits for its retry.
    [[nodiscard]] bool has_failed() const { return failed_; }

    // The last failure, or that the origin sends nothing during the listing.
    [[nodiscard]] const Error& error() const { return error_; }

    // Call it every second, to tell an origin that never answers from a long listing.
    void look();

private:
    void start();
    void run();
    void take(const TakenManifest& taken);
    void use_young(const CurrentRevision& young);
    void prove(domain::RevisionId revision, const std::string& job_uid);
    void on_proof();
    void on_prepared(Result<Preparation> prepared);

    SidecarParts parts_;
    const DatasetConfig& config_;
    Origin& origin_;
    Callbacks callbacks_;
    PreparationOptions options_;
    std::shared_ptr<std::atomic<std::uint64_t>> objects_listed_;
    bool is_running_ = false;
    bool stopped_ = false;
    bool failed_ = false;
    Error error_;
    Duration retry_delay_;
    StallDetector stall_;
    LoopTimer timer_;
    LoopTasks tasks_;
    std::stop_source stop_;
    AccessProof proof_;                     // for manifests of peers
    std::unique_ptr<ManifestTaker> taker_;  // nullptr: we always list ourselves
    domain::RevisionId wanted_{};           // the only revision to take; 0: any
    std::optional<domain::RevisionId> unproven_;
    std::unique_ptr<Workers> worker_;  // last: it uses the members above
};

}  // namespace stoker::sidecar
