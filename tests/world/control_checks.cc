#include <algorithm>
#include <utility>

#include <cpprest/json.h>
#include <fmt/format.h>

#include "operator/core/workload/build_filler.h"
#include "operator/core/workload/build_job.h"
#include "operator/kube/resource_kind.h"
#include "tests/support/api_server/target.h"
#include "tests/world/control_world.h"

// The world's oracle: what must hold always, and what must come once the faults have ended.
namespace stoker::world {

namespace kinds = control::kinds;
using control::find_at;
using control::string_at;
using std::chrono::seconds;

namespace {

// Old grants may be filled this long after a change that the operator has to hear of: it is dead,
// cut off or behind for at most 3 min, and a grant holds for 20 s.
constexpr Duration kHeardWithin = seconds{240};

// A leader counts the bytes on its disk for up to 20 s, then reports; its stream may stall for 30 s.
constexpr Duration kReportedWithin = seconds{60};

// A grant holds for 20 s and is renewed after a third of that, so it never has less left than this.
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

const web::json::value* controller_of(const web::json::value& object) {
    const auto* owners = find_at(object, {"metadata", "ownerReferences"});
    for (std::size_t i = 0; owners != nullptr && i < owners->size(); ++i) {
        if (find_at(owners->at(i), {"controller"}) != nullptr) {
            return &owners->at(i);
        }
    }
    return nullptr;
}

const ResourceKind* child_kind(const std::string& plural) {
    for (const ResourceKind* kind : {&kinds::kJobs, &kinds::kServices, &kinds::kPods}) {
        if (plural == kind->plural) {
            return kind;
        }
    }
    return nullptr;
}

}  // namespace

void ControlWorld::check() {
    check_nodes();
    check_quotas();
    check_jobs();
    schedule_.run_in(seconds{1}, [this] { check(); });
}

// Bytes of a directory that the operator answers for. Deleted datasets wait for a sweep. Where no
// sidecar leads, or has just begun to, the operator knows only what the Dataset's status last said.
Bytes ControlWorld::counted(
    const std::string& node, const std::string& uid, const NodeDirectory& directory) const {
    if (!datasets_.contains(uid) || cluster_->nodes().at(node).is_gone) {
        return {};
    }
    if (directory.leader != nullptr && schedule_.now() - directory.led_since > kReportedWithin) {
        return directory.resident;
    }
    Bytes known{};
    if (!operators_.empty()) {
        const auto latest = operators_.back()->manager().latest().get();
        for (const control::Holding& holding : latest->view.holdings) {
            if (holding.node == node && holding.dataset_uid == uid) {
                known = holding.resident;
            }
        }
    }
    return std::min(known, directory.resident);
}

void ControlWorld::check_nodes() {
    Bytes allowed = capacity_;
    for (auto it = capacities_.begin(); it != capacities_.end(); ++it) {
        const auto next = std::next(it);
        if (next == capacities_.end() || next->first + kHeardWithin >= schedule_.now()) {
            allowed = std::max(allowed, it->second);
        }
    }
    for (const auto& [name, node] : cluster_->nodes()) {
        Bytes used{};
        for (const auto& [uid, directory] : node.directories) {
            used += counted(name, uid, directory);
        }
        if (used > allowed && used > used_before_[name]) {
            accuse(
                fmt::format("node {} fills {} of {} bytes", name, used.count(), allowed.count()));
        }
        used_before_[name] = used;
    }
}

std::map<std::string, Bytes> ControlWorld::possible_by_namespace() {
    std::map<std::string, Bytes> used;
    for (auto& [name, node] : cluster_->nodes()) {
        for (const auto& [uid, directory] : node.directories) {
            Bytes held = counted(name, uid, directory);
            if (directory.leader != nullptr && datasets_.contains(uid)) {
                for (const ControlSidecar::Dataset& dataset : directory.leader->datasets()) {
                    const bool valid = !dataset.granted.is_unlimited() && dataset.uid == uid &&
                                       schedule_.now() < dataset.granted_until;
                    held = valid ? std::max(held, dataset.granted) : held;
                }
            }
            used[directory.ns] += held;
        }
    }
    return used;
}

void ControlWorld::excuse_quotas() {
    quotas_excused_until_ = schedule_.now() + kHeardWithin;
}

// As tests/sim/allocation_charges.h.
void ControlWorld::check_quotas() {
    const std::map<std::string, Bytes> used = possible_by_namespace();
    Bytes unnamed{};  // in no nominal quota
    for (const auto& [name, node] : cluster_->nodes()) {
        unnamed += node.is_gone ? Bytes{} : capacity_;
    }
    for (const auto& [ns, quota] : quotas_) {
        unnamed -= std::min(unnamed, quota.nominal);
    }
    Bytes borrowed{};
    Bytes lendable = unnamed;
    std::string broken;
    for (const auto& [ns, quota] : quotas_) {
        const auto found = used.find(ns);
        const Bytes mine = found == used.end() ? Bytes{} : found->second;
        const Bytes more = mine > quota.nominal ? mine - quota.nominal : Bytes{};
        const Bytes left = mine > quota.nominal ? Bytes{} : quota.nominal - mine;
        borrowed += more;
        lendable += std::min(quota.lending, left);
        if (more > quota.borrowing) {
            broken = fmt::format("namespace {} borrows {} bytes", ns, more.count());
        }
    }
    if (broken.empty() && borrowed > lendable) {
        broken = fmt::format("{} bytes are borrowed, {} lent", borrowed.count(), lendable.count());
    }
    // Idle bytes stay when a limit falls, so only a rise counts.
    Bytes all{};
    for (auto& [name, node] : cluster_->nodes()) {
        for (const auto& [uid, directory] : node.directories) {
            all += directory.resident;
        }
    }
    const bool rises = all > std::exchange(all_before_, all);
    if (!broken.empty() && rises && schedule_.now() >= quotas_excused_until_) {
        accuse(broken);
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

void ControlWorld::check_write(const ApiWrite& write) {
    const test::Target target = test::parse_target(write.request.target);
    if (target.plural == "trainingjobs" && target.subresource != "status" &&
        write.request.verb != control::Verb::kDelete) {
        accuse("the operator writes a user's spec: " + write.request.what);
    }
    const ResourceKind* kind = child_kind(target.plural);
    if (kind == nullptr) {
        return;
    }
    if (write.request.verb == control::Verb::kPost) {
        check_new_job(*kind, *Json::parse(write.request.body));
        return;
    }
    const auto object = api_.find(*kind, {target.ns, target.name});
    const auto* owner = object ? controller_of(object->value()) : nullptr;
    const std::string kind_of_owner = owner == nullptr ? "" : string_at(*owner, {"kind"});
    if (object && kind_of_owner != "TrainingJob" && kind_of_owner != "Dataset") {
        accuse("the operator writes an object that is not its own: " + write.request.what);
    }
}

void ControlWorld::check_new_job(const ResourceKind& kind, const Json& made) {
    const auto* owner = controller_of(made.value());
    if (!(kind == kinds::kJobs) || owner == nullptr ||
        string_at(*owner, {"kind"}) != "TrainingJob") {
        return;
    }
    const std::string name = string_at(made.value(), {"metadata", "name"});
    for (const auto& [key, job] : api_.all(kinds::kJobs)) {
        const auto* other = controller_of(job.value());
        const bool same =
            other != nullptr && string_at(*other, {"uid"}) == string_at(*owner, {"uid"});
        const bool over = holds(job, "Complete") || holds(job, "Failed");
        const bool goes = find_at(job.value(), {"metadata", "deletionTimestamp"}) != nullptr;
        if (same && !over && !goes && key.name != name) {
            accuse(fmt::format("Job {} is created while Job {} lives", name, key.name));
        }
    }
}

std::map<std::pair<std::string, std::string>, Bytes> ControlWorld::granted() {
    std::map<std::pair<std::string, std::string>, Bytes> result;
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
    return operators_.back()->manager().latest().get()->view.settled ? "" : "grants not settled";
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
            if (dataset.pinned && !dataset.has_pin && !pod.owner.empty() &&
                datasets_.contains(dataset.uid)) {
                return "no pin for " + pod_key.name;
            }
        }
    }
    return "";
}

std::string ControlWorld::unrest() {
    if (operators_.empty() || !operators_.back()->listens()) {
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
    return grant_unrest();
}

}  // namespace stoker::world
