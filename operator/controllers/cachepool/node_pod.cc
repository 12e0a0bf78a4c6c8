#include "operator/controllers/cachepool/node_pod.h"

#include <initializer_list>
#include <utility>

#include <cpprest/json.h>

#include "operator/controllers/cluster_cache.h"

namespace stoker::control {

namespace {

using web::json::value;

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

value texts(const std::vector<std::string>& items) {
    value result = value::array();
    for (const std::string& item : items) {
        result[result.size()] = text(item);
    }
    return result;
}

value text_map(const TextMap& map) {
    value result = value::object();
    for (const auto& [key, content] : map) {
        result[key] = text(content);
    }
    return result;
}

value metadata(
    const NodePod& pod,
    const NodePodSettings& settings,
    const std::optional<OwnerReference>& owner) {
    value result = object(
        {{"name", text(pod.name)},
         {"namespace", text(settings.ns)},
         {"labels",
          object(
              {{"app.kubernetes.io/managed-by", text("stoker")},
               {kComponentLabel, text(pod.component)}})},
         {"annotations", text_map(pod.annotations)}});
    if (owner) {
        result["ownerReferences"] = list({object(
            {{"apiVersion", text(owner->api_version)},
             {"kind", text(owner->kind)},
             {"name", text(owner->name)},
             {"uid", text(owner->uid)}})});
    }
    return result;
}

value container(const NodePod& pod, const NodePodSettings& settings) {
    return object(
        {{"name", text(pod.component)},
         {"image", text(settings.image)},
         {"imagePullPolicy", text(settings.image_pull_policy)},
         {"command", texts(pod.command)},
         {"securityContext",
          object(
              {{"runAsUser", value::number(pod.user)},
               {"runAsGroup", value::number(pod.group)},
               {"runAsNonRoot", value::boolean(pod.user != 0)},
               {"allowPrivilegeEscalation", value::boolean(false)},
               {"readOnlyRootFilesystem", value::boolean(true)},
               {"capabilities", object({{"drop", texts({"ALL"})}})}})},
         {"resources",
          object(
              {{"requests", object({{"cpu", text("10m")}, {"memory", text("16Mi")}})},
               {"limits", object({{"memory", text("64Mi")}})}})},
         {"volumeMounts", list({object({{"name", text("pool")}, {"mountPath", text("/pool")}})})}});
}

value spec(const NodePod& pod, const NodePodSettings& settings) {
    const char* type = pod.make_directory ? "DirectoryOrCreate" : "Directory";
    return object(
        {{"nodeName", text(pod.node)},
         {"restartPolicy", text("Never")},
         {"activeDeadlineSeconds", value::number(pod.deadline_seconds)},
         {"terminationGracePeriodSeconds", value::number(0)},
         {"automountServiceAccountToken", value::boolean(false)},
         {"enableServiceLinks", value::boolean(false)},
         {"tolerations", list({object({{"operator", text("Exists")}})})},
         {"securityContext",
          object({{"seccompProfile", object({{"type", text("RuntimeDefault")}})}})},
         {"containers", list({container(pod, settings)})},
         {"volumes",
          list({object(
              {{"name", text("pool")},
               {"hostPath", object({{"path", text(pod.host_path)}, {"type", text(type)}})}})})}});
}

}  // namespace

Json build_node_pod(
    const NodePod& pod,
    const NodePodSettings& settings,
    const std::optional<OwnerReference>& owner) {
    return Json(object(
        {{"apiVersion", text("v1")},
         {"kind", text("Pod")},
         {"metadata", metadata(pod, settings, owner)},
         {"spec", spec(pod, settings)}}));
}

}  // namespace stoker::control
