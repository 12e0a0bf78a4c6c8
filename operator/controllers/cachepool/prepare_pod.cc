#include "operator/controllers/cachepool/prepare_pod.h"

#include <initializer_list>
#include <utility>

#include <cpprest/json.h>

#include "operator/controllers/cluster_cache.h"
#include "operator/core/build_pod.h"

namespace stoker::control {

namespace {

using web::json::value;

constexpr const char* kHostPathAnnotation = "stoker.dev/host-path";
constexpr const char* kNodeUidAnnotation = "stoker.dev/node-uid";
constexpr const char* kBootIdAnnotation = "stoker.dev/boot-id";
constexpr std::int64_t kDeadlineSeconds = 240;  // less than PreparationLimits::patience

value text(const std::string& content) {
    return value::string(content);
}

value object(std::initializer_list<std::pair<const char*, value>> fields) {
    value result = value::object();
    for (const auto& [name, field] : fields) {
        result[name] = field;
    }
    return result;
}

value list(std::initializer_list<value> items) {
    value result = value::array();
    for (const value& item : items) {
        result[result.size()] = item;
    }
    return result;
}

value texts(std::initializer_list<const char*> items) {
    value result = value::array();
    for (const char* item : items) {
        result[result.size()] = text(item);
    }
    return result;
}

value metadata(
    const PreparationTarget& target,
    const PrepareSettings& settings,
    const std::optional<OwnerReference>& owner) {
    value result = object(
        {{"name", text(preparation_pod_name(target))},
         {"namespace", text(settings.ns)},
         {"labels",
          object(
              {{"app.kubernetes.io/managed-by", text("stoker")},
               {kComponentLabel, text(kPrepareComponent)}})},
         {"annotations",
          object(
              {{kHostPathAnnotation, text(target.host_path)},
               {kNodeUidAnnotation, text(target.node_uid)},
               {kBootIdAnnotation, text(target.boot_id)}})}});
    if (owner) {
        result["ownerReferences"] = list({object(
            {{"apiVersion", text(owner->api_version)},
             {"kind", text(owner->kind)},
             {"name", text(owner->name)},
             {"uid", text(owner->uid)}})});
    }
    return result;
}

// Root in name only: no capability, nothing writable but the pool. The owner of a directory may
// give it to a group that he is in, and the group's bit makes the kubelet's later directories
// inherit it. `;` and not `+`: a directory is changed before find looks into it, so that one made
// meanwhile either is seen or inherits.
value container(const PrepareSettings& settings) {
    const std::string group = std::to_string(kSidecarGroup);
    return object(
        {{"name", text("prepare")},
         {"image", text(settings.image)},
         {"imagePullPolicy", text(settings.image_pull_policy)},
         {"command",
          texts(
              {"find",
               "/pool",
               "-maxdepth",
               "2",
               "-type",
               "d",
               "-user",
               "0",
               "-exec",
               "chgrp",
               group.c_str(),
               "{}",
               ";",
               "-exec",
               "chmod",
               "2770",
               "{}",
               ";"})},
         {"securityContext",
          object(
              {{"runAsUser", value::number(0)},
               {"runAsGroup", value::number(kSidecarGroup)},
               {"allowPrivilegeEscalation", value::boolean(false)},
               {"readOnlyRootFilesystem", value::boolean(true)},
               {"capabilities", object({{"drop", texts({"ALL"})}})}})},
         {"resources",
          object(
              {{"requests", object({{"cpu", text("10m")}, {"memory", text("16Mi")}})},
               {"limits", object({{"memory", text("64Mi")}})}})},
         {"volumeMounts", list({object({{"name", text("pool")}, {"mountPath", text("/pool")}})})}});
}

value spec(const PreparationTarget& target, const PrepareSettings& settings) {
    return object(
        {{"nodeName", text(target.node)},
         {"restartPolicy", text("Never")},
         {"activeDeadlineSeconds", value::number(kDeadlineSeconds)},
         {"terminationGracePeriodSeconds", value::number(0)},
         {"automountServiceAccountToken", value::boolean(false)},
         {"enableServiceLinks", value::boolean(false)},
         {"tolerations", list({object({{"operator", text("Exists")}})})},
         {"securityContext",
          object({{"seccompProfile", object({{"type", text("RuntimeDefault")}})}})},
         {"containers", list({container(settings)})},
         {"volumes",
          list({object(
              {{"name", text("pool")},
               {"hostPath",
                object(
                    {{"path", text(target.host_path)},
                     {"type", text("DirectoryOrCreate")}})}})})}});
}

}  // namespace

Json build_prepare_pod(
    const PreparationTarget& target,
    const PrepareSettings& settings,
    const std::optional<OwnerReference>& owner) {
    return Json(object(
        {{"apiVersion", text("v1")},
         {"kind", text("Pod")},
         {"metadata", metadata(target, settings, owner)},
         {"spec", spec(target, settings)}}));
}

PreparationPod read_prepare_pod(const Pod& pod) {
    PreparationPod result;
    result.key = pod.meta.key();
    result.target.node = pod.node_name;
    result.target.node_uid = value_or_empty(pod.meta.annotations, kNodeUidAnnotation);
    result.target.boot_id = value_or_empty(pod.meta.annotations, kBootIdAnnotation);
    result.target.host_path = value_or_empty(pod.meta.annotations, kHostPathAnnotation);
    result.phase = pod.phase;
    result.deleting = pod.meta.deleting_since.has_value();
    result.created_at = pod.meta.created_at;
    return result;
}

}  // namespace stoker::control
