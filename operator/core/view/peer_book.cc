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
                 report.attached,
                 told.reads_differ ? told.peer_group_version : 0});
        }
    }
}

bool is_reading(const JobUse& use) {
    return use.is_active() && std::ranges::any_of(use.pods, [](const Pod& pod) {
               return is_live(pod) && !pod.node_name.empty();
           });
}

void add_readers(const ClusterView& cluster, PeerView& view) {
    for (const JobUse& use : cluster.jobs) {
        if (!is_reading(use)) {
            continue;
        }
        const std::string& uid = use.job->meta.uid;
        const bool is_believed = !has_read_otherwise(use.job);
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

// nullptr: nobody reads, several jobs do, or it is not known what the only one reads.
const Forecast* only_reader(const Readers& readers) {
    return readers.size() == 1 && readers.begin()->second ? &*readers.begin()->second : nullptr;
}

bool is_on_one_node(const Forecast& forecast) {
    const std::vector<std::string>& nodes = forecast.pod_nodes;
    return !nodes.empty() && std::ranges::count(nodes, nodes.front()) == std::ssize(nodes);
}

// Whether `reads` are those of the reader, wherever its ranks are.
bool are_reads_of(const Forecast& reader, KnownReads reads) {
    const std::int64_t ranks = std::ssize(reads.rank_members);
    reads.rank_members.clear();
    return reads == reader.reads && ranks == reader.rank_count;
}

// The reads of the group `before`, if they stay while nobody reads, or while some pods of the
// `reader` have no node.
std::optional<KnownReads> keep_reads(
    const Forecast* reader, const std::vector<PeerMember>& members, const PeerGroup& before) {
    const bool are_same_nodes =
        std::ranges::equal(before.members, members, {}, &PeerMember::node, &PeerMember::node);
    const bool stay = before.reads && are_same_nodes &&
                      (reader == nullptr || are_reads_of(*reader, *before.reads));
    return stay ? before.reads : std::nullopt;
}

// Whether a member of the group says that the ranks do not read what its reads say.
// `first_version`: of the groups with these reads; earlier words are about others.
bool are_refuted(
    const PeerGroup& group, const std::vector<PeerLeader>& leaders, std::uint64_t first_version) {
    return group.reads && std::ranges::any_of(leaders, [&](const PeerLeader& leader) {
               return leader.differs_at >= first_version &&
                      std::ranges::find(group.members, leader.member) != group.members.end();
           });
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
    for (const SidecarReport& report : cluster.reports) {
        const ObjectKey job{report.namespace_name, report.training_job};
        const auto user = users.find({job, report.training_job_uid});
        if (user == users.end() || !view.pods.contains({report.namespace_name, report.pod})) {
            continue;
        }
        add_report(*user->second, report, version_max, view);
    }
    add_readers(cluster, view);
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

void PeerBook::note_end(
    const PeerView::DatasetPeers& dataset, const PeerGroup& before, TimePoint now, Memory& memory) {
    if (before.reads && dataset.readers.size() > 1) {
        memory.rest_until = now + kRestAfterReader;
    }
    const Forecast* const reader = only_reader(dataset.readers);
    const auto attempt = reader == nullptr ? std::pair<std::string, std::int64_t>{}
                                           : std::pair{reader->reads.job_uid, reader->attempt};
    const bool refuted_now = before.reads && before.reads->job_uid == attempt.first &&
                             are_refuted(before, dataset.leaders, memory.first_version);
    memory.refuted =
        refuted_now || memory.refuted == attempt ? attempt : std::pair<std::string, std::int64_t>{};
}

std::optional<KnownReads> PeerBook::choose(
    const PeerView::DatasetPeers& dataset,
    const std::vector<PeerMember>& members,
    const PeerGroup& before,
    TimePoint now,
    const std::string& uid) {
    using Rule = Placing::Rule;
    Memory& memory = memories_[uid];
    Placing& placing = placings_[uid];
    placing = {};
    note_end(dataset, before, now, memory);
    const Forecast* const reader = only_reader(dataset.readers);
    if ((reader == nullptr && !dataset.readers.empty()) || now < memory.rest_until) {
        placing.rule = Rule::kOtherReader;
        return std::nullopt;
    }
    if (!memory.refuted.first.empty()) {
        placing = {Rule::kRefuted, memory.refuted.first};
        return std::nullopt;
    }
    if (reader != nullptr && is_on_one_node(*reader)) {
        placing.rule = Rule::kOneNode;
        return std::nullopt;
    }
    auto reads = reader != nullptr && !reader->pod_nodes.empty()
                     ? place_ranks(*reader, members)
                     : keep_reads(reader, members, before);
    if (reads) {
        placing = {Rule::kReads, reads->job_uid};
    }
    return reads;
}

std::set<std::string> PeerBook::observe(const PeerView& view, bool settled, TimePoint now) {
    if (!has_begun(settled, now)) {
        return {};
    }
    std::set<std::string> changed;
    const auto is_unused = [&](const auto& entry) { return !view.datasets.contains(entry.first); };
    std::erase_if(seats_, is_unused);
    std::erase_if(groups_, is_unused);
    std::erase_if(placings_, is_unused);
    std::erase_if(memories_, is_unused);
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
        auto reads = choose(dataset, members, before, now, uid);
        // A group of an earlier operator that a sidecar still uses is replaced, or emptied.
        if (dataset.version > before.version || members != before.members ||
            reads != before.reads) {
            const std::uint64_t beyond = std::max(before.version, dataset.version) + 1;
            const std::uint64_t version = std::max(next_version_++, beyond);
            if (reads != before.reads) {
                memories_[uid].first_version = version;
            }
            groups_[uid] = {uid, version, std::move(members), std::move(reads)};
            changed.insert(uid);
        }
    }
    return changed;
}

}  // namespace stoker::control
