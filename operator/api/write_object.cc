#include "operator/api/write_object.h"

#include "operator/api/time_format.h"

namespace stoker::control {

namespace {

Json write_owner(const OwnerReference& owner) {
    return json_object(
        {{"apiVersion", owner.api_version},
         {"kind", owner.kind},
         {"name", owner.name},
         {"uid", owner.uid},
         {"controller", owner.controller},
         {"blockOwnerDeletion", owner.blocks_deletion}});
}

}  // namespace

Json write_meta(const ObjectMeta& meta) {
    return json_object(
        {{"name", meta.name},
         {"namespace", meta.ns},
         {"labels", meta.labels},
         {"annotations", meta.annotations},
         {"ownerReferences", json_list(meta.owners, write_owner)}});
}

Json write_condition(const Condition& condition) {
    return json_object(
        {{"type", condition.type},
         {"status", to_string(condition.status)},
         {"observedGeneration", condition.observed_generation},
         {"lastTransitionTime", format_time(condition.last_transition)},
         {"reason", condition.reason},
         // The API requires a message, even an empty one.
         {"message", condition.message, Presence::kAlways}});
}

Json status_body(
    std::string_view kind,
    const ObjectMeta& meta,
    const Json& status,
    std::string_view api_version,
    const std::string& resource_version) {
    return json_object(
        {{"apiVersion", api_version},
         {"kind", kind},
         {"metadata",
          json_object(
              {{"name", meta.name},
               {"namespace", meta.ns},
               {"uid", meta.uid},
               {"resourceVersion", resource_version}})},
         {"status", status, Presence::kAlways}});
}

}  // namespace stoker::control
