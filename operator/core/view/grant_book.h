#pragma once

#include <compare>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/base/bytes.h"
#include "common/base/clock.h"
#include "operator/api/sidecar_report.h"
#include "operator/core/allocation/allocation_plan.h"
#include "operator/core/allocation/allocation_view.h"
#include "operator/core/spec/moment.h"
#include "operator/core/view/cluster_view.h"

namespace stoker::control {

// Bytes of one dataset on one node, as its sidecars and the Datasets' statuses report them.
struct ObservedResidency {
    std::string pool;
    std::string node;
    std::string dataset_uid;
    std::string ns;          // of the dataset
    Bytes resident{};        // reported by the leader there, else from a status
    bool in_status = false;  // a status shows bytes here, perhaps older than the report
    bool opening = false;    // the leader has not counted the bytes on its disk yet
    // Grant that the leader enforces; none: no sidecar has reported. Unlimited: it got no grant
    // since it started; it keeps its bytes and adds none.
    std::optional<Bytes> granted;
    bool live = false;     // a pod there has a sidecar that may hold a grant
    bool reached = false;  // a sidecar there is attached: grants arrive at once
    // A leader with an open stream has reported: `resident` is its count, not an ended one's.
    bool leader_attached = false;
    Bytes promised{};      // granted by an earlier operator, as statuses say
    WallTime last_used{};  // of the dataset

    bool operator==(const ObservedResidency&) const = default;
};

// Bytes that the sidecar may fill according to its report; zero without a report, or without a
// grant since it started.
Bytes grant_in_force(const ObservedResidency& word);

// All known places of datasets on nodes, for GrantBook: nodes with pods of active jobs, nodes where
// a fresh report claims to lead (of two, the newer one counts), and existing nodes in the Datasets'
// statuses. Only sidecars of the Dataset's own namespace, including its fillers, take grants: a
// place with guests' pods only is not reached, and guests' reports on the directory are ignored.
// Pure; the order of the cluster's lists does not matter.
std::vector<ObservedResidency> find_places(const ClusterView& cluster, const Moment& now);

// Time of the last report of a sidecar with the dataset, from the dataset's status.
WallTime last_use_of(const Dataset& dataset);

// Records the granted bytes and the bytes that sidecars may believe to be granted: the planner's
// holdings. Three rules keep it safe when messages are lost or late:
// - A grant counts until its sidecar confirms another one. Until then the sidecar gets no new
//   grant: with two in flight, a report could answer either one.
// - Without a sidecar, bytes stay on the disk until they are swept. So the largest of the known
//   reports and the status counts: the status may be behind, and the newest report may vanish with
//   its pod, which leaves an older one. A new operator knows the status only.
// - A new operator is not settled until every sidecar that existed before it, or that began in its
//   first 10 s, has reported, or the last grant of an earlier operator has expired. The earlier
//   operator may go on for some seconds and grant to new sidecars. A leader that detaches in these
//   10 s may have attached to the earlier operator, and must report again. Until then no grant
//   exceeds the resident bytes, and a sidecar without a report gets no grant, because a smaller one
//   would evict its bytes. So one sidecar without a report stops growth for the validity + kSlack.
// Pure: the caller passes the time. Not thread-safe.
class GrantBook {
public:
    // Added to the validity, for clock drift and messages in flight. An operator that has lost its
    // leadership stops within less time.
    static constexpr Duration kSlack = std::chrono::seconds{10};

    // `valid`: how long a grant holds; earlier operators used the same value.
    explicit GrantBook(Duration valid)
        : valid_(valid) {}

    // Replaces the observed state. `words`: one entry for each known dataset on a node, no
    // duplicates. The first call marks the time at which this operator became leader.
    void observe(const std::vector<ObservedResidency>& words, TimePoint now);

    // Calls observe() with find_places(cluster) and the reported bytes of ended sidecars that no
    // status has shown yet; sets `holdings` and `settled` of the planner's view.
    void observe(const ClusterView& cluster, const Moment& now, AllocationView& view);

    // Holdings of the observed places, by node and dataset.
    [[nodiscard]] std::vector<Holding> holdings() const;

    // Whether grants may grow.
    [[nodiscard]] bool is_settled(TimePoint now) const;

    // Number of places whose sidecar may have a grant of an earlier operator and has not reported to
    // this one.
    [[nodiscard]] std::size_t unheard() const { return unheard_.size(); }

    // Records the grants and targets of a plan made from holdings(); returns the grants that may be
    // sent. Records no target at a place without a report, and none before the book is settled: such a
    // plan begins with guesses about the earlier operator's grants.
    std::vector<Grant> take(const AllocationPlan& plan);

private:
    struct Place {
        std::string node;
        std::string dataset_uid;
        std::string pool;

        auto operator<=>(const Place&) const = default;
    };

    struct Entry {
        ObservedResidency word;
        std::optional<Bytes> sent;
        std::optional<Bytes> target{};  // of the last plan; none: that plan has none here
        Bytes believed{};               // largest grant that the sidecar may hold
        Bytes resident{};               // last reported, while the sidecar is there
        bool open = false;              // the sidecar has counted its disk's bytes and may add more
        bool in_status = false;         // the status has shown these bytes at least once
    };

    static Place place_of(const ObservedResidency& word);
    void add_unwritten(const ClusterView& cluster, std::vector<ObservedResidency>& words) const;
    void note(const ObservedResidency& word, Entry& entry);

    Duration valid_;
    std::optional<TimePoint> began_at_;
    std::map<Place, Entry> entries_;
    std::set<Place> unheard_;
    bool keeps_targets_ = false;
};

}  // namespace stoker::control
