#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "operator/core/view/cluster_view.h"
#include "operator/core/view/forecast.h"

// Groups of peers: the leaders that share one dataset's samples (docs/adr/0016-peers.md). Pure.
namespace stoker::control {

// A sidecar that leads one of a dataset's node directories and accepts peers, by its last report.
struct PeerLeader {
    ObjectKey pod;
    PeerMember member;
    bool attached = false;  // its stream is open now
    // The group version with which it says that a rank reads in another order than KnownReads say.
    // 0: it does not say so.
    std::uint64_t differs_at = 0;

    bool operator==(const PeerLeader&) const = default;
};

// The jobs that read a dataset now, guests too, by uid. nullopt: it is not known which samples the
// job's ranks will read.
using Readers = std::map<std::string, std::optional<Forecast>>;

// Snapshot of the cluster: each dataset's leaders, and the live pods of the jobs and fillers that
// use datasets.
struct PeerView {
    struct DatasetPeers {
        bool shared = false;              // nodes may fetch its samples from each other
        std::uint64_t version = 0;        // the highest group version that a sidecar has
        std::vector<PeerLeader> leaders;  // several on one node while one replaces another
        Readers readers;
    };

    std::map<std::string, DatasetPeers> datasets;  // by uid: those that a job or a filler uses
    std::set<ObjectKey> pods;                      // live pods of those jobs and fillers
};

// Takes only sidecars of the Dataset's own namespace: guests never lead. `version_max`: the highest
// group version that an operator can have sent; a report of a higher one is wrong and does not count.
PeerView find_peers(
    const ClusterView& cluster,
    std::uint64_t version_max = std::numeric_limits<std::int64_t>::max());

// The URIs that a pod's peer certificate may carry: one for each dataset of the pod's namespace that
// its job reads, that the pod mounts, and whose samples may be shared. A pod that was made before a
// user replaced the Dataset mounts the older one, which has no group. Jobs, pods and datasets are
// those of the API server. Empty: none, or the pod is not known.
std::vector<std::string> peer_uris_of(const ClusterView& cluster, const ObjectKey& key);

// Nodes whose leader failed to connect to other nodes many times and has never got one of the
// dataset's samples from them.
std::set<std::string> cut_off_nodes(
    const std::string& dataset_uid, const std::vector<SidecarReport>& reports, const Moment& now);

// The planner's view of the groups: those of at least two nodes. A dataset with a node that is cut
// off is left out, because it then takes more from the origin than the planner would count.
std::vector<PeerNodes> planned_peers(
    const std::map<std::string, PeerGroup>& groups,
    const std::vector<SidecarReport>& reports,
    const Moment& now);

// The group of every dataset over time. A member that no longer leads stays in its group for
// kKeepLost, unless its pod is gone or another sidecar leads on its node: so a broken stream or a
// restarted sidecar does not move samples between nodes. Samples are placed by the reads of the
// dataset's only reader once all its pods' nodes are members, and by the hash otherwise; reads stay
// as long as the nodes stay and no other job reads. They end for the rest of the reader's attempt if
// a member says that the ranks read otherwise, and for kRestAfterReader if another job reads.
class PeerBook {
public:
    static constexpr Duration kKeepLost = std::chrono::seconds{30};

    // Reads that another reader has ended come back after this time at the earliest: each change
    // moves most samples between the nodes, and short jobs may come and go.
    static constexpr Duration kRestAfterReader = std::chrono::minutes{10};

    // `first_version`: should be higher than the versions of earlier operators; a version that a
    // sidecar has is exceeded in any case.
    explicit PeerBook(std::uint64_t first_version)
        : next_version_(first_version) {}

    // Returns the uids of the datasets whose group changed. `settled`: all leaders have reported.
    // Until then, and at most for kKeepLost after the first call, no group changes: sidecars keep
    // the groups of the previous operator.
    std::set<std::string> observe(const PeerView& view, bool settled, TimePoint now);

    // By dataset uid. Groups without a member are listed, too: they end an older group.
    [[nodiscard]] const std::map<std::string, PeerGroup>& groups() const { return groups_; }

    // By dataset uid, for the same datasets.
    [[nodiscard]] const std::map<std::string, Placing>& placings() const { return placings_; }

private:
    struct Seat {
        PeerMember member;
        ObjectKey pod;
        TimePoint seen{};  // leading and attached
    };

    using Seats = std::map<std::string, Seat>;  // by node

    // The past of one dataset's reads.
    struct Memory {
        std::uint64_t first_version = 0;                 // of the groups with the present reads
        std::pair<std::string, std::int64_t> refuted{};  // job uid and attempt; "": none
        TimePoint rest_until{};                          // no reads before: another job read
    };

    // Notes the end of the reads of `before`.
    static void note_end(
        const PeerView::DatasetPeers& dataset,
        const PeerGroup& before,
        TimePoint now,
        Memory& memory);
    // The reads of the dataset's next group.
    std::optional<KnownReads> choose(
        const PeerView::DatasetPeers& dataset,
        const std::vector<PeerMember>& members,
        const PeerGroup& before,
        TimePoint now,
        const std::string& uid);

    // The new members of a group whose members were `before`, by the present `leaders` and `pods`.
    static Seats seat(
        const Seats& before,
        const std::vector<PeerLeader>& leaders,
        const std::set<ObjectKey>& pods,
        TimePoint now);
    // Whether groups may change: all leaders have reported, or enough time has passed.
    bool has_begun(bool settled, TimePoint now);

    std::uint64_t next_version_;
    std::optional<TimePoint> first_call_;
    bool begun_ = false;
    std::map<std::string, Seats> seats_;       // by dataset uid
    std::map<std::string, PeerGroup> groups_;  // by dataset uid
    std::map<std::string, Placing> placings_;  // by dataset uid
    std::map<std::string, Memory> memories_;   // by dataset uid
};

}  // namespace stoker::control
