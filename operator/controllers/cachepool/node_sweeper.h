#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "common/base/clock.h"
#include "common/base/guarded.h"
#include "common/base/result.h"
#include "operator/controllers/controller_parts.h"
#include "operator/core/sweep/plan_sweeps.h"

namespace stoker::control {

// Removes unneeded bytes from the nodes: collects the live datasets, plans
// (operator/core/sweep/plan_sweeps.h), orders sweeps from node programs and handles their results.
// Sweeps are known to this process only; the next operator sweeps again after a while, which
// changes nothing on a swept node. Thread-safe; reconcile() one at a time.
class NodeSweeper {
public:
    static constexpr Duration kLookEvery = std::chrono::seconds{60};
    static constexpr Duration kDeletedFor = std::chrono::hours{1};

    // `on_swept` is called after sweeps that removed bytes of existing datasets: their statuses need
    // an update.
    NodeSweeper(const ControllerParts& parts, std::function<void()> on_swept);

    // Runs one pass over the whole cluster.
    Result<Reconciled> reconcile(const ObjectKey& key);

    // Notes that a Dataset was deleted: its bytes are removed soon, whether sidecars have reported
    // them or a node program measures them within kDeletedFor.
    void note_deleted(const Dataset& dataset);

    // Successful sweeps, and failed or abandoned ones, since the start.
    struct Counts {
        std::uint64_t succeeded = 0;
        std::uint64_t failed = 0;
    };

    [[nodiscard]] Counts counts() { return *counts_.lock(); }

    // The only key of the sweeper's queue.
    static ObjectKey key() { return {"", "sweeps"}; }

private:
    struct Deleted {
        std::map<std::pair<std::string, std::string>, std::set<std::string>>
            at;  // by pool and node: uids whose bytes are still there
        std::map<std::string, WallTime> since;  // by uid
    };

    SweepView gather();
    void find_deleted(const NodeReports& reports);
    void gather_datasets(SweepView& view) const;
    void gather_inline_datasets(SweepView& view) const;
    void gather_needs(SweepView& view) const;
    void gather_guards(SweepView& view, const NodeReports& reports) const;
    void take_results();
    void settle(const SweepPlan& plan);
    void start(const NodeSweep& sweep);

    ControllerParts parts_;
    std::function<void()> on_swept_;
    WallTime watching_since_;
    std::uint64_t next_id_;
    std::map<SweepPlace, SweepRun> runs_;
    std::map<SweepPlace, WallTime> swept_;
    Guarded<Counts> counts_;
    Guarded<Deleted> deleted_;
};

}  // namespace stoker::control
