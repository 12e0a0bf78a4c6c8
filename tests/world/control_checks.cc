#include <algorithm>
#include <iterator>
#include <utility>

#include <cpprest/json.h>
#include <fmt/format.h>

#include "operator/kube/resource_kind.h"
#include "tests/world/control_world.h"

// The world's oracle: promises that hold always, and promises that hold once the faults have ended.
namespace stoker::world {

namespace kinds = control::kinds;
using control::find_at;
using control::string_at;
using std::chrono::seconds;

namespace {

// An operator plans at least every 6.7 s, a third of the time for which grants are valid. After
// this time its plans contain the grants that it made before its cache had caught up.
constexpr Duration kPlannedWithin = seconds{10};

// Once a sidecar's bytes have not changed for this long, its last report contains them.
constexpr Duration kToldWithin = seconds{10};

// A leader counts the bytes on its disk for up to 20 s, then reports; its stream may stall for 30 s.
constexpr Duration kReportedWithin = seconds{60};

// A grant is valid for 20 s and renewed after 6.7 s: even if the renewal is late, more than this is
// left of the old grant.
constexpr Duration kGrantLeft = seconds{3};

bool holds(const Json& object, const std::string& type) {
    const auto* conditions = find_at(object.value(), {"status", "conditions"});
    for (std::size_t i = 0; conditions != nullptr && i < conditions->size(); ++i) {
        if (string_at(conditions->at(i), {"type"}) == type) {
            return string_at(conditions->at(i), {"status"}) == "True";
        }
    }
    return false;
}

// Whether the operator's cache has the newest spec of the object.
template <class T>
bool has_present(
    control::Informer<T>& informer, const std::optional<Json>& object, const ObjectKey& key) {
    const auto stored = informer.store().get(key);
    return object.has_value() == (stored != nullptr) &&
           (!stored || (stored->value.meta.uid == string_at(object->value(), {"metadata", "uid"}) &&
                        stored->value.meta.generation ==
                            control::integer_at(object->value(), {"metadata", "generation"})));
}

}  // namespace

void ControlWorld::check() {
    note_knowledge();
    Uses now = uses();
    check_nodes(now);
    check_quotas(now);
    uses_before_ = std::move(now);
    check_memory();
    check_jobs();
    check_pins();
    check_groups();
    schedule_.run_in(seconds{1}, [this] { check(); });
}

bool ControlWorld::is_behind(ControlOperator& process) const {
    control::ClusterCache& cache = process.cache();
    bool present =
        has_present(cache.pools(), api_.find(kinds::kCachePools, {"", "nvme"}), {"", "nvme"});
    for (const auto& [ns, quota] : quotas_) {
        const ObjectKey key{ns, "quota"};
        present = present && has_present(cache.quotas(), api_.find(kinds::kCacheQuotas, key), key);
    }
    for (const auto& [uid, dataset] : datasets_) {
        const auto object = api_.find(kinds::kDatasets, dataset.key);
        present = present && has_present(cache.datasets(), object, dataset.key);
    }
    for (const auto& [name, node] : cluster_->nodes()) {
        const bool is_stored = cache.nodes().store().get({"", name}) != nullptr;
        present = present && is_stored != node.is_removed;
    }
    return !present;
}

// Notes the bytes that the operators know of. An operator that has not planned yet grants nothing, so
// its predecessor's knowledge counts until then.
void ControlWorld::note_knowledge() {
    const auto nodes = std::ranges::count_if(
        cluster_->nodes(), [](const auto& it) { return !it.second.is_removed; });
    bool behind = std::exchange(nodes_before_, nodes) != nodes;
    for (const auto& process : operators_) {
        behind = behind || (process->listens() && is_behind(*process));
    }
    behind_at_ = behind ? schedule_.now() : behind_at_;
    for (auto& [place, known] : known_) {
        known.outstanding = {};  // grants on their way count in any case
    }
    const auto latest = leader() == nullptr ? nullptr : leader()->manager().latest().get();
    if (latest && latest->decided_at) {
        known_.clear();
        knower_ = leader()->name();
        for (const control::Holding& holding : latest->view.holdings) {
            // Until its view is settled, a new operator process only guesses what an earlier one
            // has granted, and grants no more.
            const Bytes outstanding = latest->view.settled ? holding.outstanding : Bytes{};
            known_[{holding.node, holding.dataset_uid}] = {holding.resident, outstanding};
        }
    }
}

bool ControlWorld::has_heard() const {
    return schedule_.now() - behind_at_ >= kPlannedWithin;
}

// Bytes of a node directory that the operator must know: those on the disk, if a sidecar has led
// the directory for kReportedWithin; else those of the last report or the Dataset's status, if
// fewer.
Bytes ControlWorld::counted(
    const std::string& node, const std::string& uid, const NodeDirectory& directory) const {
    if (directory.leader != nullptr && schedule_.now() - directory.led_since > kReportedWithin) {
        return directory.resident;
    }
    const auto known = known_.find({node, uid});
    return known == known_.end() ? Bytes{} : std::min(known->second.resident, directory.resident);
}

// Bytes and grants by namespace and by node. The bytes of deleted Datasets do not count, because
// they wait to be removed from the disks; nor do bytes on lost nodes.
ControlWorld::Uses ControlWorld::uses() {
    Uses result;
    for (const auto& [name, node] : cluster_->nodes()) {
        for (const auto& [uid, directory] : node.directories) {
            if (node.is_gone || !datasets_.contains(uid)) {
                continue;
            }
            const Bytes granted =
                directory.leader == nullptr ? Bytes{} : directory.leader->granted(uid);
            const Bytes last =
                directory.leader == nullptr ? Bytes{} : directory.leader->last_grant(uid);
            const auto known = known_.find({name, uid});
            const Bytes possible = std::max(
                {counted(name, uid, directory),
                 granted,
                 known == known_.end() ? Bytes{} : known->second.outstanding});
            for (Use* use : {&result.by_namespace[directory.ns], &result.by_node[name]}) {
                use->possible += possible;
                use->actual += std::max({directory.resident, granted, last});
            }
        }
    }
    return result;
}

namespace {

// Whether the use of `name` has risen since the last check, in both of its figures (see Use). Bytes
// and grants from before a limit fell may stay, so only a rise counts. `actual` counts an expired
// grant until another grant replaces it, because the sidecar still reports the expired one: an
// operator counts it and may renew it, so it leaves no room for others.
bool rises(const auto& before, const auto& now, const std::string& name) {
    const auto was = before.find(name);
    const auto is = now.find(name);
    return is != now.end() && (was == before.end() || (is->second.possible > was->second.possible &&
                                                       is->second.actual > was->second.actual));
}

}  // namespace

// Logs the bytes that uses() counts on the node, and what the operators know of them.
void ControlWorld::tell_uses(const std::string& node) {
    for (const auto& [uid, directory] : cluster_->nodes().at(node).directories) {
        const auto known = known_.find({node, uid});
        const bool is_led = directory.leader != nullptr;
        schedule_.say(fmt::format(
            "{} of {} on {}: {} bytes on the disk, counted {}, granted {} (last {}), outstanding "
            "{}",
            uid,
            directory.ns,
            node,
            directory.resident.count(),
            counted(node, uid, directory).count(),
            is_led ? directory.leader->granted(uid).count() : 0,
            is_led ? directory.leader->last_grant(uid).count() : 0,
            known == known_.end() ? 0 : known->second.outstanding.count()));
    }
    for (const auto& process : operators_) {
        const auto latest = process->manager().latest().get();
        for (const control::Holding& holding :
             latest ? latest->view.holdings : std::vector<control::Holding>{}) {
            if (holding.node == node) {
                schedule_.say(fmt::format(
                    "{} knows of {}: {} bytes, granted {}, outstanding {}",
                    process->name(),
                    holding.dataset_uid,
                    holding.resident.count(),
                    holding.granted.count(),
                    holding.outstanding.count()));
            }
        }
    }
}

void ControlWorld::check_nodes(const Uses& uses) {
    for (const auto& [name, use] : uses.by_node) {
        if (use.possible > capacity_ && has_heard() &&
            rises(uses_before_.by_node, uses.by_node, name)) {
            tell_uses(name);
            accuse(fmt::format(
                "node {} has {} bytes for {}", name, capacity_.count(), use.possible.count()));
        }
    }
}

// The quota rule of tests/sim/allocation_charges.h; returns what breaks it, or an empty text. Only
// namespaces in `counted` can break it. `used`: bytes by namespace.
std::string ControlWorld::broken_quota(
    const std::map<std::string, Bytes>& used, const std::set<std::string>& counted) const {
    Bytes lendable{};  // bytes that quotas lend, and bytes in no nominal quota
    for (const auto& [name, node] : cluster_->nodes()) {
        lendable += node.is_removed ? Bytes{} : capacity_;
    }
    for (const auto& [ns, quota] : quotas_) {
        lendable -= std::min(lendable, quota.nominal);
    }
    Bytes borrowed{};
    bool any_counts = false;
    for (const auto& [ns, quota] : quotas_) {
        const auto found = used.find(ns);
        const Bytes mine = found == used.end() ? Bytes{} : found->second;
        const Bytes more = mine > quota.nominal ? mine - quota.nominal : Bytes{};
        const Bytes left = mine > quota.nominal ? Bytes{} : quota.nominal - mine;
        borrowed += more;
        lendable += std::min(quota.lending, left);
        const bool counts = more > Bytes{} && counted.contains(ns);
        any_counts = any_counts || counts;
        if (counts && more > quota.borrowing) {
            return fmt::format(
                "namespace {} borrows {} bytes of {}", ns, more.count(), quota.borrowing.count());
        }
    }
    return any_counts && borrowed > lendable
               ? fmt::format("{} bytes are borrowed, {} lent", borrowed.count(), lendable.count())
               : "";
}

// If a namespace keeps bytes from before a limit fell, other namespaces may still not rise.
void ControlWorld::check_quotas(const Uses& uses) {
    std::map<std::string, Bytes> used;
    std::set<std::string> rising;
    for (const auto& [ns, use] : uses.by_namespace) {
        used[ns] = use.possible;
        if (rises(uses_before_.by_namespace, uses.by_namespace, ns)) {
            rising.insert(ns);
        }
    }
    if (std::string broken = broken_quota(used, rising); has_heard() && !broken.empty()) {
        accuse(std::move(broken));
    }
}

// The operator forgets no bytes of a node directory that it knew when the last sidecar there ended.
void ControlWorld::check_memory() {
    std::map<Place, LeftBehind> left;
    for (const auto& [name, node] : cluster_->nodes()) {
        for (const auto& [uid, directory] : node.directories) {
            const Place place{name, uid};
            const auto known = known_.find(place);
            const Bytes resident = known == known_.end() ? Bytes{} : known->second.resident;
            const auto before = left_behind_.find(place);
            if (node.is_gone || !datasets_.contains(uid)) {
                continue;
            }
            if (directory.leader != nullptr) {
                if (resident == directory.resident &&
                    schedule_.now() - directory.changed_at >= kToldWithin) {
                    left[place] = {knower_, resident};
                }
            } else if (before != left_behind_.end() && before->second.knower == knower_) {
                // The sidecar may have evicted after the last check and before its end.
                const Bytes remains = std::min(before->second.resident, directory.resident);
                left[place] = {knower_, remains};
                if (resident < remains && has_heard()) {
                    accuse(fmt::format(
                        "the operator forgets {} of {} bytes of {} on {}",
                        (remains - resident).count(),
                        directory.resident.count(),
                        uid,
                        name));
                }
            }
        }
    }
    left_behind_ = std::move(left);
}

// Once grants do not change, the bytes of directories with a leader are within every limit. Bytes
// of directories without a leader may exceed a limit that was lowered: they stay on the disks until
// another dataset needs the space.
void ControlWorld::check_rest() {
    std::map<std::string, Bytes> used;
    for (const auto& [name, node] : cluster_->nodes()) {
        Bytes on_node{};
        for (const auto& [uid, directory] : node.directories) {
            if (directory.leader != nullptr && datasets_.contains(uid)) {
                const Bytes bytes = std::max(directory.resident, directory.leader->granted(uid));
                used[directory.ns] += bytes;
                on_node += bytes;
            }
        }
        if (on_node > capacity_) {
            accuse(
                fmt::format("at rest, node {} has sidecars with {} bytes", name, on_node.count()));
        }
    }
    const std::set<std::string> all{std::begin(kNamespaces), std::end(kNamespaces)};
    if (std::string broken = broken_quota(used, all); !broken.empty()) {
        accuse("at rest, " + broken);
    }
}

void ControlWorld::check_jobs() {
    if (++checks_ % 5 != 0) {
        return;
    }
    for (const auto& [key, job] : api_.all(kinds::kTrainingJobs)) {
        const std::string uid = string_at(job.value(), {"metadata", "uid"});
        const bool is_final = holds(job, "Complete") || holds(job, "Failed");
        if (is_final) {
            final_.insert(uid);
        } else if (final_.contains(uid)) {
            accuse("TrainingJob " + to_string(key) + " had ended and goes on");
        }
    }
}

// All ranks of an attempt read one revision.
void ControlWorld::check_pins() {
    std::map<std::pair<ObjectKey, std::string>, std::uint64_t> pins;  // by Job and dataset
    for (const auto& [key, pod] : cluster_->pods()) {
        for (const auto& dataset :
             pod.sidecar ? pod.sidecar->datasets() : std::vector<ControlSidecar::Dataset>{}) {
            if (dataset.pin == 0) {
                continue;
            }
            const auto [it, is_new] = pins.try_emplace({pod.job, dataset.uid}, dataset.pin);
            if (!is_new && it->second != dataset.pin) {
                accuse("the ranks of Job " + to_string(pod.job) + " have different pins");
            }
        }
    }
}

std::map<ControlWorld::Place, Bytes> ControlWorld::granted() {
    std::map<Place, Bytes> result;
    for (auto& [name, node] : cluster_->nodes()) {
        for (const auto& [uid, directory] : node.directories) {
            if (directory.leader == nullptr) {
                continue;
            }
            for (const ControlSidecar::Dataset& dataset : directory.leader->datasets()) {
                if (dataset.uid == uid) {
                    result[{name, uid}] = dataset.granted;
                }
            }
        }
    }
    return result;
}

std::string ControlWorld::grant_unrest() {
    for (auto& [name, node] : cluster_->nodes()) {
        for (const auto& [uid, directory] : node.directories) {
            if (directory.leader == nullptr || !datasets_.contains(uid)) {
                continue;
            }
            for (const ControlSidecar::Dataset& dataset : directory.leader->datasets()) {
                if (dataset.uid != uid) {
                    continue;
                }
                const std::string where = fmt::format("{} of {}", uid, name);
                if (dataset.granted.is_unlimited() ||
                    dataset.granted_until <= schedule_.now() + kGrantLeft) {
                    return "no valid grant for " + where;
                }
                if (directory.resident > dataset.granted) {
                    return "more bytes than granted for " + where;
                }
            }
        }
    }
    return leader()->manager().latest().get()->view.settled ? "" : "grants not settled";
}

std::string ControlWorld::job_unrest(const ObjectKey& key, const Json& job) {
    if (holds(job, "Complete") || holds(job, "Failed")) {
        return "";
    }
    if (!holds(job, "Running")) {
        return "TrainingJob " + to_string(key) + " does not run";
    }
    for (const auto& [pod_key, pod] : cluster_->pods()) {
        if (pod_key.ns == key.ns && pod.owner == key.name && !pod.has_ended() && !pod.is_ready) {
            return "pod " + pod_key.name + " is not ready";
        }
        if (pod.sidecar && !pod.sidecar->is_attached()) {
            return "sidecar of " + pod_key.name + " is not attached";
        }
        for (const auto& dataset :
             pod.sidecar ? pod.sidecar->datasets() : std::vector<ControlSidecar::Dataset>{}) {
            if (dataset.pinned && dataset.pin == 0 && !pod.owner.empty() &&
                datasets_.contains(dataset.uid)) {
                return "no pin for " + pod_key.name;
            }
        }
    }
    return "";
}

std::string ControlWorld::unrest() {
    if (leader() == nullptr || !leader()->listens()) {
        return "no operator leads";
    }
    const auto jobs = api_.all(kinds::kTrainingJobs);
    for (const auto& [key, job] : jobs) {
        if (std::string words = job_unrest(key, job); !words.empty()) {
            return words;
        }
    }
    for (const auto& [key, pod] : cluster_->pods()) {
        if (!pod.owner.empty() && !jobs.contains({key.ns, pod.owner})) {
            return "pod " + key.name + " of a deleted TrainingJob";
        }
    }
    std::string words = grant_unrest();
    return words.empty() ? peer_unrest() : words;
}

}  // namespace stoker::world
