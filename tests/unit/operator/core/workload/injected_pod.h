#pragma once

#include <string>
#include <vector>

#include <cpprest/json.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "operator/api/pod.h"
#include "operator/core/workload/foreign_job.h"
#include "tests/support/api_server/json_patch.h"
#include "tests/unit/operator/core/make_training_job.h"

// A pod of another controller and its patch, for tests of foreign_job.h.
namespace stoker::control {

// A pod of a Job with one container and the label, as a webhook gets it.
inline constexpr const char* kPod = R"({
  "apiVersion": "v1", "kind": "Pod",
  "metadata": {"generateName": "train-0-", "labels": {"stoker.dev/dataset": "imagenet"},
    "annotations": {"batch.kubernetes.io/job-completion-index": "0"}},
  "spec": {
    "containers": [{"name": "main", "image": "train:1", "env": [{"name": "LR", "value": "3"}],
      "volumeMounts": [{"name": "kube-api-access-x", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}],
      "resources": {"limits": {"nvidia.com/gpu": "8"}}}],
    "volumes": [{"name": "kube-api-access-x", "projected": {}}]}})";

inline Json pod_with(const std::string& patch = "[]") {
    return test::patched(Json::parse(kPod).value(), Json::parse(patch).value());
}

// For pod_with(): the label's dataset as files.
inline constexpr const char* kFiles =
    R"([{"op":"add","path":"/metadata/annotations/stoker.dev~1mount-path","value":"/data/train"}])";

// Adds a volume of the user's with that name, mounted at /data/train.
inline Json with_volume(const Json& pod, const std::string& name) {
    return test::patched(
        pod,
        Json::parse(
            fmt::format(
                R"([{{"op":"add","path":"/spec/volumes/-","value":{{"name":"{0}","emptyDir":{{}}}}}},
                   {{"op":"add","path":"/spec/containers/0/volumeMounts/-",
                     "value":{{"name":"{0}","mountPath":"/data/train"}}}}])",
                name))
            .value());
}

inline ForeignPod read_pod(const Json& pod) {
    return read_document<ForeignPod>(pod).value();
}

inline ForeignWorkload workload_of(
    const std::string& kind = "Job", const std::string& name = "train") {
    return {{"batch/v1", kind, name, "uid-workload"}, "uid-controller", 2};
}

// The input of foreign_patch() for a pod whose Dataset exists.
struct Injected {
    explicit Injected(Json pod_json, Dataset dataset = make_dataset())
        : raw(std::move(pod_json)),
          pod(read_pod(raw)),
          found(std::move(dataset)) {
        const auto find = [this](const ObjectKey& key) {
            return key == found.meta.key() ? &found : nullptr;
        };
        spec = foreign_spec(pod, "team", workload, find);
        if (spec) {
            job = read_document<TrainingJob>(foreign_body("team", workload.ref, *spec)).value();
            datasets = resolve_datasets(job, {found});
        }
        settings.sidecar_image = "sidecar:1";
    }

    Json patch_of(const Json& json) const {
        return foreign_patch(
            json, read_pod(json), {*spec, job, datasets.datasets, pool, settings, workload});
    }

    Json patched() const { return test::patched(raw, patch_of(raw)); }

    ForeignWorkload workload = workload_of();
    Json raw;
    ForeignPod pod;
    Dataset found;
    Result<Json> spec = Json{};
    TrainingJob job;
    ResolvedDatasets datasets;
    ResolvedPool pool{"nvme", 15, {}, false};
    JobSettings settings;
};

inline web::json::value container(const Json& pod, const char* list, const std::string& name) {
    for (const web::json::value& item : pod.value().at("spec").at(list).as_array()) {
        if (item.at("name").as_string() == name) {
            return item;
        }
    }
    ADD_FAILURE() << "no container " << name;
    return pod.value();
}

inline std::string env(const web::json::value& of, const std::string& name) {
    for (const web::json::value& variable : of.at("env").as_array()) {
        if (variable.at("name").as_string() == name) {
            return variable.has_field("value") ? variable.at("value").as_string()
                                               : variable.at("valueFrom").serialize();
        }
    }
    return "(absent)";
}

inline std::vector<std::string> names(const Json& pod, const char* list) {
    std::vector<std::string> result;
    for (const web::json::value& item : pod.value().at("spec").at(list).as_array()) {
        result.push_back(item.at("name").as_string());
    }
    return result;
}

}  // namespace stoker::control
