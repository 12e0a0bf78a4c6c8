#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "common/runtime/loop_tasks.h"
#include "sidecar/service/guest_doors.h"
#include "sidecar/service/leader.h"
#include "sidecar/store/directory_lock.h"
#include "wire/control/report.h"

namespace stoker::sidecar {

// Adds what was fetched: requests, bytes, time, and samples found damaged.
void add_fetched(control::DatasetReport& sum, const control::DatasetReport& more);

// The lead of one node directory: its lock, the Leader while we have that, and the sockets at which
// the sidecars of other pods and other namespaces follow. A leader that the origin refuses lets the
// lead go when somebody else may take it, and rests before it tries again. Belongs to the loop's
// thread.
class Leadership {
public:
    struct Callbacks {
        std::function<void()> ended;    // the lock is free again
        std::function<void()> changed;  // the gate does not let our trainers read what we listed
    };

    // `gate` and `listener`: the Leader's.
    Leadership(
        const SidecarParts& parts,
        const DatasetConfig& config,
        Origin& origin,
        RevisionGate& gate,
        ReadingListener& listener,
        Callbacks callbacks);
    Leadership(const Leadership&) = delete;
    Leadership& operator=(const Leadership&) = delete;

    // Leads where nobody else has the lock. False: somebody else has it, or is to take it. A guest
    // never leads. `keep_revision`: the Leader's. Errors: the node directory cannot be used.
    Result<bool> take(bool keep_revision);

    // nullptr unless we lead.
    [[nodiscard]] Leader* leader() const { return leader_.get(); }

    // The operator's orders on the dataset. Without them those of the configuration.
    void set_grant(EngineGrant grant, JobWeights weights);

    [[nodiscard]] const EngineGrant& grant() const { return grant_; }

    // Are other sidecars connected, of our own namespace or of guests?
    [[nodiscard]] bool has_followers() const;

    // The reason why we let the lead go; empty once we lead again.
    [[nodiscard]] const Error& refusal() const { return refusal_; }

    // Fetches of our leads that have ended, so that the totals of a report never fall.
    [[nodiscard]] const control::DatasetReport& past_leads() const { return past_leads_; }

    // First step of a stop: no sessions from other sidecars, no listing.
    void stop();

    // Last step of a stop: seals the store, then lets the lock go.
    void close();

private:
    [[nodiscard]] Result<std::optional<DirectoryLock>> try_lock();
    void remove_old_files();
    void open_doors();
    void close_doors();
    Result<std::unique_ptr<SessionServer>> listen();
    void on_forbidden(const Error& error);
    void on_retired();

    SidecarParts parts_;
    const DatasetConfig& config_;
    Origin& origin_;
    RevisionGate& gate_;
    ReadingListener& listener_;
    Callbacks callbacks_;
    EngineGrant grant_;
    JobWeights weights_;
    std::optional<DirectoryLock> lock_;
    std::unique_ptr<Leader> leader_;
    std::unique_ptr<SessionServer> followers_;  // nullptr: other sidecars cannot follow us
    std::unique_ptr<GuestDoors> guest_doors_;
    std::unique_ptr<Leader> retiring_;  // let go of the lead, still at work
    control::DatasetReport past_leads_;
    Error refusal_;
    std::optional<TimePoint> rests_until_;
    Duration rest_;
    LoopTasks tasks_;
};

}  // namespace stoker::sidecar
