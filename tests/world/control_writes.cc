#include <string_view>

#include <cpprest/json.h>
#include <fmt/format.h>

#include "operator/kube/resource_kind.h"
#include "tests/support/api_server/target.h"
#include "tests/world/control_world.h"

// Checks each write of the operator before the API server executes it: the operator may write the
// status of users' objects, and Jobs and Services of TrainingJobs and Datasets.
namespace stoker::world {

namespace kinds = control::kinds;
using control::find_at;
using control::string_at;

namespace {

const web::json::value* controller_of(const web::json::value& object) {
    const auto* owners = find_at(object, {"metadata", "ownerReferences"});
    for (std::size_t i = 0; owners != nullptr && i < owners->size(); ++i) {
        const auto* controller = find_at(owners->at(i), {"controller"});
        if (controller != nullptr && controller->is_boolean() && controller->as_bool()) {
            return &owners->at(i);
        }
    }
    return nullptr;
}

bool is_users(const std::string& plural) {
    for (const ResourceKind* kind :
         {&kinds::kTrainingJobs,
          &kinds::kDatasets,
          &kinds::kDatasetWarmups,
          &kinds::kCachePools,
          &kinds::kCacheQuotas}) {
        if (plural == kind->plural) {
            return true;
        }
    }
    return false;
}

const ResourceKind* child_kind(const std::string& plural) {
    for (const ResourceKind* kind : {&kinds::kJobs, &kinds::kServices}) {
        if (plural == kind->plural) {
            return kind;
        }
    }
    return nullptr;
}

// The TrainingJob's or Dataset's uid; "": the object belongs to neither.
std::string owner_uid(const web::json::value& object) {
    const auto* owner = controller_of(object);
    const std::string kind = owner == nullptr ? "" : string_at(*owner, {"kind"});
    const bool is_ours = (kind == kinds::kTrainingJobs.kind || kind == kinds::kDatasets.kind) &&
                         string_at(*owner, {"apiVersion"}) == kinds::kTrainingJobs.api_version();
    return is_ours ? string_at(*owner, {"uid"}) : "";
}

bool has_ended_or_goes(const web::json::value& job) {
    const auto* conditions = find_at(job, {"status", "conditions"});
    for (std::size_t i = 0; conditions != nullptr && i < conditions->size(); ++i) {
        const std::string type = string_at(conditions->at(i), {"type"});
        if ((type == "Complete" || type == "Failed") &&
            string_at(conditions->at(i), {"status"}) == "True") {
            return true;
        }
    }
    return find_at(job, {"metadata", "deletionTimestamp"}) != nullptr;
}

}  // namespace

void ControlWorld::check_write(const ApiWrite& write) {
    const test::Target target = test::parse_target(write.request.target);
    if (is_users(target.plural)) {
        if (target.plural == kinds::kDatasetWarmups.plural &&
            write.request.verb == control::Verb::kDelete) {
            // The operator may delete a warm-up that has ended, at its ttl.
            const auto warmup = api_.find(kinds::kDatasetWarmups, {target.ns, target.name});
            if (warmup && !has_ended_or_goes(warmup->value())) {
                accuse("the operator deletes a warm-up that has not ended");
            }
            return;
        }
        const bool is_status =
            target.subresource == "status" && write.request.verb == control::Verb::kPatch;
        if (!is_status || find_at(Json::parse(write.request.body)->value(), {"spec"}) != nullptr) {
            accuse("the operator writes more than the status: " + write.request.what);
        }
        return;
    }
    const ResourceKind* kind = child_kind(target.plural);
    if (kind == nullptr || !target.subresource.empty()) {
        accuse("the operator writes what it does not own: " + write.request.what);
        return;
    }
    if (write.request.verb == control::Verb::kPost) {
        check_new_child(write, *kind, *Json::parse(write.request.body));
        return;
    }
    const auto object = api_.find(*kind, {target.ns, target.name});
    if (object && owner_uid(object->value()).empty()) {
        accuse("the operator writes an object of another owner: " + write.request.what);
    }
}

void ControlWorld::check_new_child(
    const ApiWrite& write, const ResourceKind& kind, const Json& made) {
    const std::string owner = owner_uid(made.value());
    if (owner.empty()) {
        accuse("the operator creates an object without an owner: " + write.request.what);
    } else if (kind == kinds::kJobs) {
        check_new_job(made, owner);
    }
}

// A Dataset has a filler for each node; a TrainingJob has one Job.
void ControlWorld::check_new_job(const Json& made, const std::string& owner) {
    if (string_at(*controller_of(made.value()), {"kind"}) != kinds::kTrainingJobs.kind) {
        return;
    }
    const std::string name = string_at(made.value(), {"metadata", "name"});
    for (const auto& [key, job] : api_.all(kinds::kJobs)) {
        if (key.name != name && owner_uid(job.value()) == owner &&
            !has_ended_or_goes(job.value())) {
            accuse(fmt::format("Job {} is created while Job {} lives", name, key.name));
        }
    }
}

}  // namespace stoker::world
