#pragma once

#include "operator/api/ca_bundle.h"
#include "operator/api/field_codec.h"
#include "operator/api/label_selector.h"
#include "operator/api/training_job.h"

// JSON fields of the structs that several kinds share.
namespace stoker::control {

// The names of [{"name": ...}].
struct Names {
    void read(
        const JsonReader& json, const std::string& name, std::vector<std::string>& value) const {
        json.each(name, [&](const JsonReader& item) { value.push_back(item.text("name")); });
    }

    [[nodiscard]] Json write(const std::vector<std::string>& value) const {
        return json_list(value, [](const std::string& it) { return json_object({{"name", it}}); });
    }
};

template <>
inline constexpr auto kFields<LabelRequirement> = table(
    field("key", &LabelRequirement::key),
    field("operator", &LabelRequirement::op),
    field("values", &LabelRequirement::values));

template <>
inline constexpr auto kFields<LabelSelector> = table(
    field("matchLabels", &LabelSelector::match_labels),
    field("matchExpressions", &LabelSelector::match_expressions));

template <>
inline constexpr auto kFields<CaBundle> = table(
    field("kind", &CaBundle::kind), field("name", &CaBundle::name), field("key", &CaBundle::key));

template <>
inline constexpr auto kFields<EnvVar> = table(
    field("name", &EnvVar::name),
    field("value", &EnvVar::value),
    field("valueFrom", &EnvVar::value_from));

template <>
inline constexpr auto kFields<Resources> = table(
    field("limits", &Resources::limits, Quantities{}),
    field("requests", &Resources::requests, Quantities{}));

template <>
inline constexpr auto kFields<ContainerProgram> = table(
    field("image", &ContainerProgram::image),
    field("command", &ContainerProgram::command),
    field("args", &ContainerProgram::args),
    field("env", &ContainerProgram::env),
    field("resources", &ContainerProgram::resources));

template <>
inline constexpr auto kFields<ContainerSettings> = table(
    field("imagePullPolicy", &ContainerSettings::image_pull_policy),
    field("workingDir", &ContainerSettings::working_dir),
    field("envFrom", &ContainerSettings::env_from),
    field("ports", &ContainerSettings::ports),
    field("securityContext", &ContainerSettings::security_context));

template <>
inline constexpr auto kFields<PodScheduling> = table(
    field("nodeSelector", &PodScheduling::node_selector),
    field("affinity", &PodScheduling::affinity),
    field("tolerations", &PodScheduling::tolerations),
    field("topologySpreadConstraints", &PodScheduling::topology_spread_constraints),
    field("priorityClassName", &PodScheduling::priority_class_name),
    field("schedulerName", &PodScheduling::scheduler_name),
    field("runtimeClassName", &PodScheduling::runtime_class_name),
    field("imagePullSecrets", &PodScheduling::image_pull_secrets, Names{}),
    field("securityContext", &PodScheduling::security_context));

}  // namespace stoker::control
