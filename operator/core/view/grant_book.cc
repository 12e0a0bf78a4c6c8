#include "operator/core/view/grant_book.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "common/base/saturating.h"
#include "operator/core/view/guests.h"
#include "operator/core/view/totals.h"

namespace stoker::control {

namespace {

using Place = std::tuple<std::string, std::string, std::string>;  // pool, node, uid

class Finder {
public:
    Finder(const ClusterView& cluster, const Moment& now)
        : cluster_(cluster),
          now_(now) {
        for (const JobUse& use : cluster.jobs) {
            jobs_[{use.job->meta.uid, use.job->meta.name}] = &use;
        }
        for (const Node& node : cluster.nodes) {
            nodes_.insert(node.meta.name);
        }
    }

    std::vector<ObservedResidency> find() {
        for (const JobUse& use : cluster_.jobs) {
            if (!use.pool.name.empty()) {
                add_pods(use);
            }
        }
        add_reports();
        add_counts();
        add_promises();
        add_remembered();
        name_owners();
        std::vector<ObservedResidency> result;
        for (auto& entry : words_) {
            result.push_back(std::move(entry.second));
        }
        return result;
    }

private:
    // A leader's report of the dataset's bytes on its node.
    struct Count {
        TimePoint at;
        bool attached = false;
        Bytes resident{};
    };

    ObservedResidency& word(const Place& place) {
        ObservedResidency& result = words_[place];
        std::tie(result.pool, result.node, result.dataset_uid) = place;
        return result;
    }

    void add_pods(const JobUse& use) {
        for (const Pod& pod : use.pods) {
            if (pod.node_name.empty() || !nodes_.contains(pod.node_name)) {
                continue;
            }
            for (const ResolvedDataset& dataset : use.datasets->datasets) {
                ObservedResidency& it = word({use.pool.name, pod.node_name, dataset.uid});
                it.live = it.live || (!is_guest(use.job, dataset) && !has_ended(pod));
            }
        }
    }

    // If several sidecars lead, because one of them has just died, the newest report counts.
    void add_reports() {
        std::map<Place, TimePoint> newest;
        for (const SidecarReport& report : cluster_.reports) {
            const auto job = jobs_.find({report.training_job_uid, report.training_job});
            if (job != jobs_.end() && !job->second->pool.name.empty() && is_fresh(report, now_)) {
                add_report(*job->second, report, newest);
            }
        }
    }

    void add_report(
        const JobUse& use, const SidecarReport& report, std::map<Place, TimePoint>& newest) {
        for (const ResolvedDataset& dataset : use.datasets->datasets) {
            if (is_guest(use.job, dataset)) {
                continue;
            }
            const Place place{use.pool.name, report.node, dataset.uid};
            if (report.attached) {
                word(place).reached = true;
            }
            for (const DatasetReport& told : report.datasets) {
                if (told.leader && told.dataset_uid == dataset.uid) {
                    add_word(place, report, told, newest);
                }
            }
        }
    }

    void add_word(
        const Place& place,
        const SidecarReport& report,
        const DatasetReport& dataset,
        std::map<Place, TimePoint>& newest) {
        const TimePoint at = report.received_at;
        ObservedResidency& it = word(place);
        it.leader_attached = it.leader_attached || report.attached;
        if (has_counted(dataset)) {
            counts_[place].push_back({at, report.attached, dataset.resident_bytes});
        } else {
            it.opening = true;
        }
        const auto before = newest.find(place);
        const bool tie = before != newest.end() && before->second == at;
        if (before == newest.end() || before->second < at) {
            it.granted = dataset.granted_bytes;
            newest[place] = at;
        } else if (tie) {
            it.granted = std::max(it.granted, std::optional(dataset.granted_bytes));
        }
    }

    // Ignores the counts of ended sidecars that are older than an attached leader's count: bytes may
    // have been evicted since.
    void add_counts() {
        for (const auto& [place, counts] : counts_) {
            TimePoint counted_at = TimePoint::min();
            for (const Count& count : counts) {
                counted_at = count.attached ? std::max(counted_at, count.at) : counted_at;
            }
            ObservedResidency& it = word(place);
            for (const Count& count : counts) {
                if (count.attached || count.at > counted_at) {
                    it.resident = std::max(it.resident, count.resident);
                }
            }
        }
    }

    // A job's status gives its granted bytes. Subtracts the bytes that its sidecars report: the
    // rest may be on nodes without a report.
    void add_promises() {
        const bool someone_is_silent =
            std::any_of(words_.begin(), words_.end(), [](const auto& entry) {
                return entry.second.live && !entry.second.granted;
            });
        if (!someone_is_silent) {
            return;
        }
        const auto places = by_dataset();
        for (const JobUse& use : cluster_.jobs) {
            for (const JobDatasetStatus& status : use.job->status.datasets) {
                for (const ResolvedDataset& dataset : use.datasets->datasets) {
                    const auto at = places.find(dataset.uid);
                    if (dataset.name == status.name && status.allocated_bytes > 0 &&
                        at != places.end()) {
                        promise(use, dataset, bytes_of(status.allocated_bytes), at->second);
                    }
                }
            }
        }
    }

    using Words = std::map<Place, ObservedResidency>;

    // The places of each dataset, in ascending order.
    std::map<std::string, std::vector<Words::iterator>> by_dataset() {
        std::map<std::string, std::vector<Words::iterator>> result;
        for (auto it = words_.begin(); it != words_.end(); ++it) {
            result[it->second.dataset_uid].push_back(it);
        }
        return result;
    }

    // Sets `promised` of the job's nodes without a report to the part of `all`, the job's granted
    // bytes, that no report shows. A guest's bytes may be on any node of the dataset: fillers,
    // which hold them, may outlast its pods.
    static void promise(
        const JobUse& use,
        const ResolvedDataset& dataset,
        Bytes all,
        const std::vector<Words::iterator>& places) {
        const std::set<std::string> nodes = use.live_nodes();
        const bool anywhere = is_guest(use.job, dataset);
        for (const auto place : places) {
            if (nodes.contains(place->second.node)) {
                all -= grant_in_force(place->second);
            }
        }
        for (const auto place : places) {
            ObservedResidency& silent = place->second;
            if (silent.live && !silent.granted && (anywhere || nodes.contains(silent.node))) {
                silent.promised = std::max(silent.promised, all);
            }
        }
    }

    void add_remembered() {
        for (const Dataset& dataset : cluster_.datasets) {
            for (const DatasetPlacement& placement : dataset.status.placements) {
                const Place place{placement.pool, placement.node, dataset.meta.uid};
                // A report is newer.
                if (nodes_.contains(placement.node) && placement.bytes > 0) {
                    ObservedResidency& it = word(place);
                    it.in_status = true;
                    it.resident = counts_.contains(place) ? it.resident : bytes_of(placement.bytes);
                }
            }
        }
    }

    // Sets the namespace of each place's dataset: the Dataset's own, or that of the job that
    // defines the dataset inline. Also sets `last_used`.
    void name_owners() {
        std::map<std::string, std::string> owners;
        for (const JobUse& use : cluster_.jobs) {
            for (const ResolvedDataset& dataset : use.datasets->datasets) {
                owners.emplace(dataset.uid, dataset.ns);
            }
        }
        std::map<std::string, WallTime> last_used;
        for (const Dataset& dataset : cluster_.datasets) {
            owners[dataset.meta.uid] = dataset.meta.ns;
            last_used[dataset.meta.uid] = last_use_of(dataset);
        }
        for (auto& [place, it] : words_) {
            it.last_used = last_used[it.dataset_uid];
            if (const auto owner = owners.find(it.dataset_uid); owner != owners.end()) {
                it.ns = owner->second;
            }
        }
    }

    const ClusterView& cluster_;
    const Moment& now_;
    // By uid and name: the fillers of a Dataset in several pools have one uid.
    std::map<std::pair<std::string, std::string>, const JobUse*> jobs_;
    std::set<std::string> nodes_;
    std::map<Place, std::vector<Count>> counts_;
    Words words_;
};

}  // namespace

std::vector<ObservedResidency> find_places(const ClusterView& cluster, const Moment& now) {
    return Finder{cluster, now}.find();
}

WallTime last_use_of(const Dataset& dataset) {
    return std::max(dataset.status.sampled_at.value_or(WallTime{}), dataset.meta.created_at);
}

Bytes grant_in_force(const ObservedResidency& word) {
    const Bytes told = word.granted.value_or(Bytes::zero());
    return told.is_unlimited() ? Bytes::zero() : told;
}

GrantBook::Place GrantBook::place_of(const ObservedResidency& word) {
    return {word.node, word.dataset_uid, word.pool};
}

void GrantBook::observe(const std::vector<ObservedResidency>& words, TimePoint now) {
    began_at_ = began_at_.value_or(now);
    // An earlier operator may still run, and send grants to sidecars that start meanwhile.
    const bool is_early = now - *began_at_ < kSlack;
    std::map<Place, Entry> entries;
    std::set<Place> unheard;
    for (const ObservedResidency& word : words) {
        const Place place = place_of(word);
        Entry entry;
        if (const auto known = entries_.find(place); known != entries_.end()) {
            entry = std::move(known->second);
        }
        const bool expected = is_early || unheard_.contains(place);
        if (expected && word.live && (!word.granted || !word.leader_attached)) {
            unheard.insert(place);
            if (!entry.sent) {  // else the statuses show our own grants
                entry.believed = std::max(entry.believed, word.promised);
            }
        }
        note(word, entry);
        entries[place] = std::move(entry);
    }
    entries_ = std::move(entries);
    unheard_ = std::move(unheard);
    keeps_targets_ = is_settled(now);
}

void GrantBook::observe(const ClusterView& cluster, const Moment& now, AllocationView& view) {
    std::vector<ObservedResidency> words = find_places(cluster, now);
    add_unwritten(cluster, words);
    observe(words, now.steady);
    view.holdings = holdings();
    view.settled = is_settled(now.steady);
}

void GrantBook::note(const ObservedResidency& word, Entry& entry) {
    entry.word = word;
    if (word.granted) {
        if (word.opening) {
            const Bytes filled = entry.open ? entry.believed : Bytes::zero();
            entry.resident = std::max({entry.resident, word.resident, filled});
        } else {
            // An ended sidecar's report may be older than the last known bytes: take the larger.
            const Bytes least = word.leader_attached ? Bytes::zero() : entry.resident;
            entry.resident = std::max(word.resident, least);
        }
        entry.open = !word.opening;
        const Bytes grant = grant_in_force(word);
        const bool confirmed = !entry.sent || *entry.sent == grant;
        entry.believed = confirmed ? grant : std::max(entry.believed, grant);
    } else {
        // Without a fresh report the last known bytes stay, or more if a status shows more. If a
        // status once showed an ended sidecar's bytes and no longer does, they were swept.
        const bool is_swept = !word.live && entry.in_status && !word.in_status;
        entry.resident = is_swept ? word.resident : std::max(entry.resident, word.resident);
        if (!word.live) {
            entry.sent.reset();
            entry.believed = Bytes::zero();
            entry.open = false;
        }
    }
    entry.in_status = (entry.in_status || word.in_status) && entry.resident > Bytes::zero();
}

// Adds bytes that an ended sidecar reported and that no status has shown yet. Bytes that a status
// has shown once and no longer shows were swept: they are not added.
void GrantBook::add_unwritten(
    const ClusterView& cluster, std::vector<ObservedResidency>& words) const {
    std::set<Place> told;
    for (const ObservedResidency& word : words) {
        told.insert(place_of(word));
    }
    std::set<std::string> uids;
    for (const Dataset& dataset : cluster.datasets) {
        uids.insert(dataset.meta.uid);
    }
    std::set<std::string> nodes;
    for (const Node& node : cluster.nodes) {
        nodes.insert(node.meta.name);
    }
    for (const auto& [place, entry] : entries_) {
        if (!told.contains(place) && !entry.in_status && entry.resident > Bytes::zero() &&
            uids.contains(place.dataset_uid) && nodes.contains(place.node)) {
            ObservedResidency word;
            word.pool = place.pool;
            word.node = place.node;
            word.dataset_uid = place.dataset_uid;
            word.ns = entry.word.ns;
            word.last_used = entry.word.last_used;
            word.resident = entry.resident;
            words.push_back(std::move(word));
        }
    }
}

std::vector<Holding> GrantBook::holdings() const {
    std::vector<Holding> result;
    for (const auto& [place, entry] : entries_) {
        const ObservedResidency& word = entry.word;
        Holding holding{word.pool, word.node, word.dataset_uid, entry.resident, entry.resident};
        holding.ns = word.ns;
        holding.last_used = word.last_used;
        holding.outstanding = std::max(entry.believed, grant_in_force(word));
        holding.target = entry.target;
        holding.uncounted =
            word.granted ? word.opening && word.granted->is_unlimited() : word.live && !entry.sent;
        if (unheard_.contains(place)) {
            // An earlier operator's grant stays as it is until its size is known.
            holding.granted = entry.believed;
            holding.in_flight = true;
        } else if (entry.sent) {
            holding.granted = *entry.sent;
            holding.in_flight =
                word.granted ? *word.granted != *entry.sent : word.live && word.reached;
        } else if (word.granted || entry.believed > Bytes::zero()) {
            holding.granted = word.granted.value_or(entry.believed);
        }
        result.push_back(std::move(holding));
    }
    return result;
}

bool GrantBook::is_settled(TimePoint now) const {
    return unheard_.empty() || (began_at_ && now - *began_at_ >= valid_ + kSlack);
}

std::vector<Grant> GrantBook::take(const AllocationPlan& plan) {
    for (auto& [place, entry] : entries_) {
        entry.target.reset();
    }
    for (const Target& target : plan.targets) {
        const auto entry = entries_.find({target.node, target.dataset_uid, target.pool});
        if (keeps_targets_ && entry != entries_.end() && !unheard_.contains(entry->first)) {
            entry->second.target = target.bytes;
        }
    }
    std::vector<Grant> sent;
    for (const Grant& grant : plan.grants) {
        bool may = true;
        for (auto it = entries_.lower_bound({grant.node, grant.dataset_uid, ""});
             it != entries_.end() && it->first.node == grant.node &&
             it->first.dataset_uid == grant.dataset_uid;
             ++it) {
            may = may && !unheard_.contains(it->first);
            if (may) {
                Entry& entry = it->second;
                entry.sent = grant.resident_bytes;
                entry.believed = std::max(entry.believed, grant.resident_bytes);
            }
        }
        if (may) {
            sent.push_back(grant);
        }
    }
    return sent;
}

}  // namespace stoker::control
