#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "common/runtime/event_loop.h"
#include "sidecar/service/guest_doors.h"
#include "sidecar/service/leader.h"
#include "sidecar/store/directory_lock.h"
#include "wire/control/orders.h"
#include "wire/control/report.h"

namespace stoker::sidecar {

// Adds the fetch totals of `more` to `sum`: requests, bytes, time, and samples found damaged.
void add_fetched(control::DatasetReport& sum, const control::DatasetReport& more);

// The lead of one node directory: its lock, the Leader while we hold the lock, and the sockets at
// which sidecars of other pods and namespaces follow us. If the origin denies us access and another
// sidecar may take the lead, we release it and pause before we try again. Use it on the loop's
// thread.
class Leadership {
public:
    struct Callbacks {
        std::function<void()> ended;    // the lock was released
        std::function<void()> changed;  // the gate denies our trainers the revision that we listed
    };

    // `gate` and `listener`: as for Leader.
    Leadership(
        const SidecarParts& parts,
        const DatasetConfig& config,
        Origin& origin,
        RevisionGate& gate,
        ReadingListener& listener,
        Callbacks callbacks);
    Leadership(const Leadership&) = delete;
    Leadership& operator=(const Leadership&) = delete;

    // Takes the lead if the lock is free. False: another sidecar has it, or should take it. A guest
    // never leads. `keep_revision`: as for Leader. Errors: the node directory cannot be used.
    Result<bool> take(bool keep_revision);

    // nullptr unless we lead.
    [[nodiscard]] Leader* leader() const { return leader_.get(); }

    // Applies the operator's grant and weights for the dataset; the configured grant applies before
    // the first call. Ignored while we do not lead. Forgotten when the lead ends, because another
    // leader may have received newer ones.
    void set_grant(EngineGrant grant, JobWeights weights);

    [[nodiscard]] const EngineGrant& grant() const { return grant_; }

    // Sets the nodes that share the dataset's samples; ignores a group older than the last one.
    void set_peers(const control::PeerGroup& group);

    // Whether other sidecars are connected, of our own namespace or of guests.
    [[nodiscard]] bool has_followers() const;

    // Why we released the lead; empty once we lead again.
    [[nodiscard]] const Error& refusal() const { return refusal_; }

    // Fetch totals of the leads that we have ended, so that the totals of a report never fall.
    [[nodiscard]] const control::DatasetReport& past_leads() const { return past_leads_; }

    // First step of a stop: ends other sidecars' sessions and the listing.
    void stop();

    // Last step of a stop: seals the store, then releases the lock.
    void close();

private:
    [[nodiscard]] Result<std::optional<DirectoryLock>> try_lock();
    void remove_old_files();
    void forget_orders();
    void open_doors();
    void open_door();
    void close_doors();
    Result<std::unique_ptr<SessionServer>> listen();
    bool on_forbidden(const Error& error);
    void on_retired();

    SidecarParts parts_;
    const DatasetConfig& config_;
    Origin& origin_;
    RevisionGate& gate_;
    ReadingListener& listener_;
    Callbacks callbacks_;
    EngineGrant grant_;
    JobWeights weights_;
    control::PeerGroup peers_;
    std::optional<DirectoryLock> lock_;
    std::unique_ptr<Leader> leader_;
    std::unique_ptr<SessionServer> followers_;  // nullptr: other sidecars cannot follow us
    std::unique_ptr<GuestDoors> guest_doors_;
    std::unique_ptr<Leader> retiring_;  // has released the lead and still finishes its work
    control::DatasetReport past_leads_;
    Error refusal_;
    std::optional<TimePoint> rests_until_;
    Duration rest_;
    LoopTimer door_timer_;    // retries to listen for followers
    std::string door_error_;  // why nobody can follow us; empty while they can
    LoopTasks tasks_;
};

}  // namespace stoker::sidecar
