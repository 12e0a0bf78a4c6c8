#include "operator/core/workload/foreign_job.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "common/base/fnv1a.h"
#include "common/base/quantity.h"
#include "common/domain/http_uri.h"
#include "operator/core/spec/field_checks.h"
#include "operator/core/workload/build_pod.h"
#include "operator/core/workload/foreign_checks.h"

namespace stoker::control {

namespace {

constexpr std::string_view kDefaultContainer = "kubectl.kubernetes.io/default-container";
constexpr std::string_view kCompletionIndex = "batch.kubernetes.io/job-completion-index";
constexpr std::string_view kReplicaIndex = "training.kubeflow.org/replica-index";
constexpr std::string_view kLoopback = "http://127.0.0.1:";
constexpr std::array<std::string_view, 2> kEndpointVariables = {
    "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"};

std::string digest_of(std::string_view text) {
    return fmt::format("{:08x}", fnv1a(text) >> 32U);
}

const EnvVar* find_variable(const ForeignContainer& container, std::string_view name) {
    const auto found = std::ranges::find(container.env, name, &EnvVar::name);
    return found == container.env.end() ? nullptr : &*found;
}

// A whole number above 0 in a variable, or nullopt.
std::optional<std::int64_t> number_in(const ForeignContainer& container, std::string_view name) {
    const EnvVar* variable = find_variable(container, name);
    const Result<std::int64_t> number =
        variable == nullptr ? Result<std::int64_t>(0) : parse_whole(variable->value);
    return number && *number > 0 ? std::optional(*number) : std::nullopt;
}

// The number of pods that train together: torchrun's variable for it; else the workload's number of
// pods; else WORLD_SIZE, as if each pod ran one process.
std::int64_t count_nodes(const ForeignContainer& reader, const ForeignWorkload& workload) {
    const auto told = number_in(reader, "PET_NNODES");
    const auto world = number_in(reader, "WORLD_SIZE");
    const std::int64_t count = told                 ? *told
                               : workload.pod_count ? *workload.pod_count
                                                    : world.value_or(1);
    return std::clamp<std::int64_t>(count, 1, kNodeCountMax);
}

// The rank of the pod, for the sidecar's reports: from the container's own variables, else from what
// the controller wrote on the pod.
std::optional<EnvVar> rank_variable(const ForeignPod& pod, const ForeignContainer& reader) {
    const std::string name = "JOB_COMPLETION_INDEX";
    for (const std::string_view variable : {"PET_NODE_RANK", "RANK"}) {
        if (const EnvVar* found = find_variable(reader, variable)) {
            return EnvVar{name, found->value, found->value_from};
        }
    }
    if (pod.meta.annotations.contains(std::string{kCompletionIndex})) {
        return EnvVar{
            name, "", from_field(fmt::format("metadata.annotations['{}']", kCompletionIndex))};
    }
    if (pod.meta.labels.contains(std::string{kReplicaIndex})) {
        return EnvVar{name, "", from_field(fmt::format("metadata.labels['{}']", kReplicaIndex))};
    }
    return std::nullopt;
}

// The label's own annotations: how the program reads its dataset.
Json access_of_label(const TextMap& annotations) {
    return json_object(
        {{"access", value_or_empty(annotations, kAccessAnnotation)},
         {"mountPath", value_or_empty(annotations, kMountPathAnnotation)}});
}

// The dataset that the label names, and those that the annotation names in addition.
Result<std::vector<Json>> dataset_entries(const ForeignPod& pod) {
    const std::string& name = value_or_empty(pod.meta.labels, kDatasetLabel);
    const TextMap& annotations = pod.meta.annotations;
    const Json access = access_of_label(annotations);
    const Json reference = json_object(
        {{"name", name}, {"namespace", value_or_empty(annotations, kDatasetNamespaceAnnotation)}});
    std::vector<Json> entries = {
        merged(json_object({{"name", name}, {"datasetRef", reference}}), access)};
    const std::string& more = value_or_empty(annotations, kDatasetsAnnotation);
    if (more.empty()) {
        return entries;
    }
    Result<std::vector<Json>> items = parse_list(more);
    if (!items) {
        return fail(items.error().prefixed(fmt::format("annotation {}", kDatasetsAnnotation)));
    }
    for (Json& item : *items) {
        if (string_at(item.value(), {"name"}) == name) {
            entries.front() = merged(access, item);
        } else {
            entries.push_back(std::move(item));
        }
    }
    return entries;
}

std::string without_slash(std::string url) {
    while (url.ends_with('/')) {
        url.pop_back();
    }
    return url;
}

// The endpoint variable that names another server than `origin`, or nullptr. The pod's own S3
// endpoint, set by an earlier patch, does not count as another server.
const EnvVar* other_endpoint(const ForeignContainer& reader, const std::string& origin) {
    for (const std::string_view name : kEndpointVariables) {
        const EnvVar* variable = find_variable(reader, name);
        const bool differs = variable != nullptr && !variable->value.starts_with(kLoopback) &&
                             (variable->value_from != Json() ||
                              without_slash(variable->value) != without_slash(origin));
        if (differs) {
            return variable;
        }
    }
    return nullptr;
}

// Whether only half of an S3 key is visible in the environment: the other half comes from an
// envFrom, which the webhook cannot read.
bool has_half_a_key(const ForeignContainer& reader) {
    return (find_variable(reader, "AWS_ACCESS_KEY_ID") == nullptr) !=
           (find_variable(reader, "AWS_SECRET_ACCESS_KEY") == nullptr);
}

// Whether check_origins() accepts access S3.
bool may_use_s3(DatasetFormat format, const DatasetSource& source) {
    const bool has_objects = format == DatasetFormat::kObjects ||
                             format == DatasetFormat::kBlocks || format == DatasetFormat::kChunks;
    return has_objects && !source.volume && !domain::is_http_uri(source.storage_uri);
}

// Whether S3 is the default access of an entry without mountPath: the dataset has objects in an
// object store, and the program's S3 client reads that store, so it can be pointed at the pod's
// endpoint.
bool reads_by_s3(
    const JobDataset& entry,
    const std::string& ns,
    const ForeignContainer& reader,
    const FindDataset& find) {
    if (entry.contract != Contract::kExact || has_half_a_key(reader)) {
        return false;
    }
    if (entry.storage_uri) {
        return other_endpoint(reader, entry.endpoint) == nullptr;
    }
    const Dataset* dataset = find(dataset_key(ns, entry));
    if (dataset == nullptr || dataset->spec.sources.empty()) {
        return false;
    }
    const DatasetSource& source = dataset->spec.sources.front();
    return dataset->spec.format != DatasetFormat::kChunks &&
           may_use_s3(dataset->spec.format, source) &&
           other_endpoint(reader, source.endpoint) == nullptr;
}

DatasetAccess default_access(
    const JobDataset& entry,
    const std::string& ns,
    const ForeignContainer& reader,
    const FindDataset& find) {
    if (entry.mount_path) {
        return DatasetAccess::kFiles;
    }
    return reads_by_s3(entry, ns, reader, find) ? DatasetAccess::kS3 : DatasetAccess::kSdk;
}

// How the program sees a dataset that its pod template no longer names.
DatasetAccess access_of_unnamed(
    const JobDataset& entry, const std::string& ns, const FindDataset& find) {
    const Dataset* dataset = entry.storage_uri ? nullptr : find(dataset_key(ns, entry));
    return dataset != nullptr && dataset->spec.format == DatasetFormat::kBlocks
               ? DatasetAccess::kS3
               : DatasetAccess::kSdk;
}

bool is_same_dataset(const JobDataset& a, const JobDataset& b) {
    return a.name == b.name && a.dataset_ref == b.dataset_ref &&
           a.dataset_ref_namespace == b.dataset_ref_namespace && a.storage_uri == b.storage_uri;
}

Json write_ref(const WorkloadRef& ref) {
    return json_object(
        {{"apiVersion", ref.api_version},
         {"kind", ref.kind},
         {"name", ref.name},
         {"uid", ref.uid}});
}

Json describe_trainer(const ForeignContainer& reader, const ForeignWorkload& workload) {
    const Json resources =
        json_object({{"limits", reader.resources.limits}, {"requests", reader.resources.requests}});
    return json_object(
        {{"image", reader.image},
         {"numNodes", count_nodes(reader, workload)},
         {"resourcesPerNode", resources}});
}

Result<Json> cache_of(const ForeignPod& pod) {
    const std::string& text = value_or_empty(pod.meta.annotations, kCacheAnnotation);
    if (text.empty()) {
        return Json{};
    }
    Result<Json> cache = Json::parse(text);
    return cache ? std::move(cache)
                 : fail(cache.error().prefixed(fmt::format("annotation {}", kCacheAnnotation)));
}

// The container's own S3 keys, twice: as the keys with which clients sign requests to the S3
// endpoint, and as those with which the endpoint signs requests to the origin.
std::vector<EnvVar> own_keys(const ForeignContainer& reader) {
    const EnvVar* access = find_variable(reader, "AWS_ACCESS_KEY_ID");
    const EnvVar* secret = find_variable(reader, "AWS_SECRET_ACCESS_KEY");
    if (access == nullptr || secret == nullptr) {
        return {};
    }
    std::vector<EnvVar> keys = {
        {"STOKER_S3_ACCESS_KEY", access->value, access->value_from},
        {"STOKER_S3_SECRET_KEY", secret->value, secret->value_from},
        *access,
        *secret};
    if (const EnvVar* token = find_variable(reader, "AWS_SESSION_TOKEN")) {
        keys.push_back(*token);
    }
    return keys;
}

// The job with the program and variables of this pod's container.
TrainingJob as_seen_by(const ForeignContainer& reader, const TrainingJob& job) {
    TrainingJob result = job;
    static_cast<ContainerProgram&>(result.spec.trainer) = reader;
    std::erase_if(result.spec.trainer.env, [](const EnvVar& variable) {
        return std::ranges::count(kEndpointVariables, variable.name) > 0;
    });
    // The ServiceAccount's token is mounted before webhooks run, unless the pod forbids it.
    result.spec.pod_template.automount_service_account_token = true;
    return result;
}

}  // namespace

std::string foreign_job_name(const WorkloadRef& workload) {
    std::string kind = workload.kind;
    std::ranges::transform(kind, kind.begin(), [](unsigned char c) { return std::tolower(c); });
    const std::string whole = fmt::format("{}-{}", kind, workload.name);
    if (whole.size() <= kTrainingJobNameLengthMax && is_dns_label(whole)) {
        return whole;
    }
    std::string cut = whole.substr(0, kTrainingJobNameLengthMax - 9);
    std::ranges::replace_if(
        cut, [](unsigned char c) { return std::isalnum(c) == 0; }, '-');
    return fmt::format("{}-{}", cut, digest_of(workload.api_version + whole));
}

const ForeignContainer* reader_of(const ForeignPod& pod) {
    const TextMap& annotations = pod.meta.annotations;
    const std::string& wanted = value_or_empty(annotations, kContainerAnnotation);
    const std::string& usual = value_or_empty(annotations, std::string{kDefaultContainer});
    const auto find = [&](const std::string& name) {
        return std::ranges::find(pod.containers, name, &ForeignContainer::name);
    };
    const auto found = find(wanted.empty() ? usual : wanted);
    if (found != pod.containers.end()) {
        return &*found;
    }
    return wanted.empty() && !pod.containers.empty() ? &pod.containers.front() : nullptr;
}

Json foreign_body(const std::string& ns, const WorkloadRef& workload, const Json& spec) {
    return json_object(
        {{"apiVersion", "stoker.dev/v1alpha1"},
         {"kind", "TrainingJob"},
         {"metadata",
          json_object(
              {{"name", foreign_job_name(workload)},
               {"namespace", ns},
               {"labels", json_object({{"app.kubernetes.io/managed-by", "stoker"}})},
               {"ownerReferences", std::vector{write_ref(workload)}}})},
         {"spec", spec}});
}

Result<Json> foreign_spec(
    const ForeignPod& pod,
    const std::string& ns,
    const ForeignWorkload& workload,
    const FindDataset& find_dataset) {
    STOKER_TRY_VOID(check_pod(pod));
    const ForeignContainer& reader = *reader_of(pod);
    STOKER_TRY(std::vector<Json> entries, dataset_entries(pod));
    STOKER_TRY(const Json cache, cache_of(pod));
    const auto write_spec = [&] {
        return json_object(
            {{"workloadRef", write_ref(workload.ref)},
             {"trainer", describe_trainer(reader, workload)},
             {"datasets", entries},
             {"cache", cache}});
    };
    const auto read_spec = [&] {
        return read_document<TrainingJob>(foreign_body(ns, workload.ref, write_spec()));
    };
    STOKER_TRY(const TrainingJob asked, read_spec());
    for (std::size_t i = 0; i < entries.size(); ++i) {
        if (string_at(entries[i].value(), {"access"}).empty()) {
            const auto access = default_access(asked.spec.datasets[i], ns, reader, find_dataset);
            entries[i] = merged(entries[i], json_object({{"access", choice_text(access)}}));
        }
    }
    STOKER_TRY(const TrainingJob job, read_spec());
    STOKER_TRY_VOID(check_job(pod, job));
    return write_spec();
}

Result<TrainingJob> with_accesses(
    const ForeignPod& pod,
    TrainingJob stored,
    const TrainingJob& asked,
    const FindDataset& find_dataset) {
    for (JobDataset& dataset : stored.spec.datasets) {
        dataset.access = access_of_unnamed(dataset, stored.meta.ns, find_dataset);
        dataset.mount_path.reset();
    }
    for (const JobDataset& wanted : asked.spec.datasets) {
        const auto found = std::ranges::find_if(
            stored.spec.datasets, [&](const auto& it) { return is_same_dataset(it, wanted); });
        if (found != stored.spec.datasets.end()) {
            found->access = wanted.access;
            found->mount_path = wanted.mount_path;
        } else if (wanted.mount_path) {
            return refuse(fmt::format(
                "TrainingJob {} was created earlier without dataset {}, and its datasets cannot "
                "change; delete the workload and create it again",
                stored.meta.name,
                wanted.name));
        }
    }
    STOKER_TRY_VOID(check_job(pod, stored));
    return stored;
}

std::string describe_lack(const ForeignPod& pod) {
    // An annotation that cannot be parsed names no folder.
    const auto entries =
        dataset_entries(pod).value_or(std::vector{access_of_label(pod.meta.annotations)});
    std::vector<std::string> folders;
    for (const Json& entry : entries) {
        const std::string path = string_at(entry.value(), {"mountPath"});
        if (!path.empty()) {
            folders.push_back(path);
        }
    }
    return folders.empty()
               ? "a cache"
               : fmt::format("a cache, and without files in {}", fmt::join(folders, ", "));
}

std::string tell_bypass(const ForeignPod& pod, const std::vector<ResolvedDataset>& datasets) {
    const ForeignContainer& reader = *reader_of(pod);
    for (const ResolvedDataset& dataset : datasets) {
        const EnvVar* other = other_endpoint(reader, dataset.source.endpoint);
        const bool chosen = pod.meta.annotations.contains(kAccessAnnotation);
        if (other != nullptr && !chosen && may_use_s3(dataset.format, dataset.source) &&
            dataset.access == DatasetAccess::kSdk) {
            return fmt::format(
                "S3 clients of container {} bypass the cache, because {} is not the endpoint of "
                "dataset {}; annotation {}: S3 replaces the variable",
                reader.name,
                other->name,
                dataset.name,
                kAccessAnnotation);
        }
    }
    return {};
}

Json foreign_patch(const Json& raw, const ForeignPod& pod, const ForeignInput& input) {
    const ForeignContainer& reader = *reader_of(pod);
    const TrainingJob job = as_seen_by(reader, input.job);
    JobInput wanted{job, input.datasets, input.pool, input.settings, 1, {}, {}};
    wanted.foreign =
        ForeignPlace{input.workload.attempt_uid, rank_variable(pod, reader), own_keys(reader)};
    JobManifest manifest;
    manifest.pod = build_foreign_pod(wanted);
    manifest.pod.annotations[kContainerAnnotation] = reader.name;
    manifest.pod.annotations[kWorkloadAnnotation] = input.spec.text();
    return addition_patch(
        raw,
        pod_template(manifest),
        reader.name,
        {kEndpointVariables.begin(), kEndpointVariables.end()});
}

Json refusal_patch(const Json& raw, const std::string& reason) {
    JobManifest manifest;
    manifest.pod.annotations[kRefusalAnnotation] = reason;
    return addition_patch(raw, pod_template(manifest), "", {});
}

}  // namespace stoker::control
