#include "operator/core/view/peer_book.h"

#include <algorithm>
#include <tuple>

#include <fmt/format.h>

#include "operator/core/view/guests.h"
#include "operator/core/view/totals.h"
#include "operator/core/workload/build_job.h"

namespace stoker::control {

namespace {

bool is_own(const TrainingJob& job, const ResolvedDataset& dataset) {
    return !is_guest(job, dataset);
}

bool is_live(const Pod& pod) {
    return !has_ended(pod);
}

// nullptr: the job has no such pod, or it has ended. Valid as long as `use`.
const Pod* find_live_pod(const JobUse& use, const ObjectKey& key) {
    const auto found = std::ranges::find_if(
        use.pods, [&](const Pod& pod) { return pod.meta.key() == key && is_live(pod); });
    return found == use.pods.end() ? nullptr : &**found;
}

bool mounts(const Pod& pod, const ResolvedDataset& dataset) {
    return std::ranges::find(pod.node_directories, dataset.ns + "/" + dataset.uid) !=
           pod.node_directories.end();
}

// A leader with this many failed connections and no sample from peers is cut off: the network
// blocks it. If packets are dropped, two nodes reach this number in about 90 s
// (PeerFetches::kRestMax, kConnectMax).
constexpr std::uint64_t kConnectFailuresMin = 10;

bool is_cut_off(const DatasetReport& dataset) {
    return dataset.peer_samples == 0 && dataset.peer_connect_failures >= kConnectFailuresMin;
}

// Adds one sidecar's report about datasets of its own namespace.
void add_report(
    const JobUse& use, const SidecarReport& report, std::uint64_t version_max, PeerView& view) {
    for (const DatasetReport& told : report.datasets) {
        const bool is_ours =
            std::ranges::any_of(use.datasets->datasets, [&](const ResolvedDataset& dataset) {
                return dataset.uid == told.dataset_uid && is_own(use.job, dataset);
            });
        if (!is_ours) {
            continue;
        }
        PeerView::DatasetPeers& peers = view.datasets[told.dataset_uid];
        if (told.peer_group_version <= version_max) {
            peers.version = std::max(peers.version, told.peer_group_version);
        }
        if (told.leader && !told.peer_address.empty()) {
            peers.leaders.push_back(
                {{report.namespace_name, report.pod},
                 {report.node, told.peer_address, told.peer_generation},
                 report.attached});
        }
    }
}

// Whether a sidecar of the job's present attempt says that its trainers read in another order than
// the job's spec says.
bool tells_other_reads(const TrainingJob& job, const SidecarReport& report) {
    return report.pod.starts_with(pod_prefix(job, job.status.attempt)) &&
           std::ranges::any_of(report.datasets, &DatasetReport::reads_differ);
}

bool is_reading(const JobUse& use) {
    return use.is_active() && std::ranges::any_of(use.pods, [](const Pod& pod) {
               return is_live(pod) && !pod.node_name.empty();
           });
}

// `otherwise`: uids of jobs whose reads are not those of their spec.
void add_readers(
    const ClusterView& cluster, const std::set<std::string>& otherwise, PeerView& view) {
    for (const JobUse& use : cluster.jobs) {
        if (!is_reading(use)) {
            continue;
        }
        const std::string& uid = use.job->meta.uid;
        const bool is_believed = !otherwise.contains(uid) && !has_read_otherwise(use.job);
        for (const ResolvedDataset& dataset : use.datasets->datasets) {
            const auto peers = view.datasets.find(dataset.uid);
            if (peers == view.datasets.end()) {
                continue;
            }
            const auto [reader, is_first] = peers->second.readers.emplace(
                uid, is_believed ? foresee(use, dataset) : std::nullopt);
            if (!is_first) {
                reader->second.reset();  // two entries of the job name the dataset
            }
        }
    }
}

// The reads by which a group of `members` places samples; nullopt: it does by the hash. `before`:
// the group until now.
std::optional<KnownReads> choose_reads(
    const Readers& readers, const std::vector<PeerMember>& members, const PeerGroup& before) {
    if (members.size() < 2 || readers.size() > 1) {
        return std::nullopt;
    }
    if (!readers.empty()) {
        const auto& [uid, forecast] = *readers.begin();
        if (!forecast || !forecast->pod_nodes.empty()) {
            return forecast ? place_ranks(*forecast, members) : std::nullopt;
        }
        if (before.reads && before.reads->job_uid != uid) {
            return std::nullopt;
        }
    }
    // Nobody reads at the moment, or some pods of the reader have no node yet.
    const bool are_same_nodes =
        std::ranges::equal(before.members, members, {}, &PeerMember::node, &PeerMember::node);
    return are_same_nodes ? before.reads : std::nullopt;
}

}  // namespace

PeerView find_peers(const ClusterView& cluster, std::uint64_t version_max) {
    PeerView view;
    std::map<std::pair<ObjectKey, std::string>, const JobUse*> users;  // by key and uid
    for (const JobUse& use : cluster.jobs) {
        users[{use.job->meta.key(), use.job->meta.uid}] = &use;
        for (const ResolvedDataset& dataset : use.datasets->datasets) {
            if (is_own(use.job, dataset)) {
                view.datasets[dataset.uid].shared = dataset.peers;
            }
        }
        for (const Pod& pod : use.pods) {
            if (is_live(pod)) {
                view.pods.insert(pod.meta.key());
            }
        }
    }
    std::set<std::string> otherwise;
    for (const SidecarReport& report : cluster.reports) {
        const ObjectKey job{report.namespace_name, report.training_job};
        const auto user = users.find({job, report.training_job_uid});
        if (user == users.end() || !view.pods.contains({report.namespace_name, report.pod})) {
            continue;
        }
        add_report(*user->second, report, version_max, view);
        if (tells_other_reads(user->second->job, report)) {
            otherwise.insert(report.training_job_uid);
        }
    }
    add_readers(cluster, otherwise, view);
    return view;
}

std::vector<std::string> peer_uris_of(const ClusterView& cluster, const ObjectKey& key) {
    std::set<std::string> uris;
    for (const JobUse& use : cluster.jobs) {
        const Pod* const pod = find_live_pod(use, key);
        if (pod == nullptr) {
            continue;
        }
        for (const ResolvedDataset& dataset : use.datasets->datasets) {
            if (dataset.peers && dataset.ns == key.ns && mounts(*pod, dataset)) {
                uris.insert(
                    fmt::format("stoker://namespace/{}/dataset/{}", dataset.ns, dataset.uid));
            }
        }
    }
    return {uris.begin(), uris.end()};
}

std::set<std::string> cut_off_nodes(
    const std::string& dataset_uid, const std::vector<SidecarReport>& reports, const Moment& now) {
    std::set<std::string> nodes;
    for (const SidecarReport& report : reports) {
        const bool is_ours = std::ranges::any_of(report.datasets, [&](const auto& dataset) {
            return dataset.dataset_uid == dataset_uid && is_cut_off(dataset);
        });
        if (is_ours && is_fresh(report, now)) {
            nodes.insert(report.node);
        }
    }
    return nodes;
}

std::vector<PeerNodes> planned_peers(
    const std::map<std::string, PeerGroup>& groups,
    const std::vector<SidecarReport>& reports,
    const Moment& now) {
    std::set<std::string> cut_off;  // uids of datasets with a node that is cut off
    for (const SidecarReport& report : reports) {
        for (const DatasetReport& dataset : report.datasets) {
            if (is_cut_off(dataset) && is_fresh(report, now)) {
                cut_off.insert(dataset.dataset_uid);
            }
        }
    }
    std::vector<PeerNodes> result;
    for (const auto& [uid, group] : groups) {
        if (group.members.size() < 2 || cut_off.contains(uid)) {
            continue;
        }
        result.push_back({uid, {}});
        for (const PeerMember& member : group.members) {
            result.back().nodes.push_back(member.node);
        }
    }
    return result;
}

PeerBook::Seats PeerBook::seat(
    const Seats& before,
    const std::vector<PeerLeader>& leaders,
    const std::set<ObjectKey>& pods,
    TimePoint now) {
    Seats after;
    for (const PeerLeader& leader : leaders) {
        if (!leader.attached) {
            continue;
        }
        Seat& seat = after[leader.member.node];
        if (std::tie(leader.member.generation, leader.pod) >=
            std::tie(seat.member.generation, seat.pod)) {
            seat = {leader.member, leader.pod, now};
        }
    }
    for (const auto& [node, seat] : before) {
        if (pods.contains(seat.pod) && now - seat.seen < kKeepLost) {
            after.emplace(node, seat);  // unless another leads there
        }
    }
    return after;
}

bool PeerBook::has_begun(bool settled, TimePoint now) {
    first_call_ = first_call_.value_or(now);
    begun_ = begun_ || settled || now - *first_call_ >= kKeepLost;
    return begun_;
}

std::set<std::string> PeerBook::observe(const PeerView& view, bool settled, TimePoint now) {
    if (!has_begun(settled, now)) {
        return {};
    }
    std::set<std::string> changed;
    const auto is_unused = [&](const auto& entry) { return !view.datasets.contains(entry.first); };
    std::erase_if(seats_, is_unused);
    std::erase_if(groups_, is_unused);
    for (const auto& [uid, dataset] : view.datasets) {
        Seats& seats = seats_[uid];
        seats = dataset.shared ? seat(seats, dataset.leaders, view.pods, now) : Seats{};
        std::vector<PeerMember> members;
        for (const auto& [node, seat] : seats) {
            members.push_back(seat.member);
        }
        static const PeerGroup kNone;
        const auto known = groups_.find(uid);
        const PeerGroup& before = known == groups_.end() ? kNone : known->second;
        auto reads = choose_reads(dataset.readers, members, before);
        // A group of an earlier operator that a sidecar still uses is replaced, or emptied.
        if (dataset.version > before.version || members != before.members ||
            reads != before.reads) {
            const std::uint64_t beyond = std::max(before.version, dataset.version) + 1;
            groups_[uid] = {
                uid, std::max(next_version_++, beyond), std::move(members), std::move(reads)};
            changed.insert(uid);
        }
    }
    return changed;
}

}  // namespace stoker::control
