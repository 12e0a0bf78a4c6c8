#include <algorithm>
#include <filesystem>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "common/base/quantity.h"
#include "common/domain/http_uri.h"
#include "operator/api/pod.h"
#include "operator/core/spec/field_checks.h"
#include "operator/core/spec/validate.h"
#include "operator/core/spec/validate_placement.h"

namespace stoker::control {

namespace {

constexpr std::int64_t kEpochsMax = 1'000'000;
constexpr std::string_view kOurPrefix = "stoker-";
constexpr std::string_view kOurKeys = "stoker.dev/";
constexpr std::string_view kOurVariables = "STOKER_";

void check_name(const ObjectMeta& meta, Complaints& complaints) {
    complaints.unless(
        meta.name.size() <= kTrainingJobNameLengthMax,
        "metadata.name",
        "metadata.name must have at most 52 characters: pods are named after it with attempt and "
        "rank added (NAME-a1-0), and a host name has at most 63");
    complaints.unless(
        is_dns_label(meta.name) && (meta.name.front() < '0' || meta.name.front() > '9'),
        "metadata.name",
        "metadata.name must be a DNS label: lower-case letters, digits and '-', beginning with a "
        "letter and ending with a letter or digit, because pods and a Service are named after it");
}

bool is_process_count(const std::string& text) {
    if (text == "auto" || text == "cpu" || text == "gpu") {
        return true;
    }
    const bool is_number = !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
        return c >= '0' && c <= '9';
    });
    const Result<std::int64_t> count = parse_whole(text);
    return is_number && count && *count >= 1 && *count <= kProcessesPerNodeMax;
}

void check_quantities(const TextMap& quantities, std::string_view path, Complaints& complaints) {
    for (const auto& [resource, text] : quantities) {
        const Result<std::int64_t> count = parse_whole(text);
        complaints.unless(
            count.has_value(),
            fmt::format("{}[{}]", path, resource),
            count ? "" : count.error().message);
    }
}

void check_trainer(const TrainerSpec& trainer, Complaints& complaints) {
    complaints.unless(!trainer.image.empty(), "spec.trainer.image", "image is missing");
    complaints.unless(
        trainer.node_count >= 1 && trainer.node_count <= kNodeCountMax,
        "spec.trainer.numNodes",
        "numNodes must be 1 to 10000");
    complaints.unless(
        is_process_count(trainer.processes_per_node),
        "spec.trainer.numProcPerNode",
        "numProcPerNode must be auto, cpu, gpu or a number from 1 to 1024");
    complaints.unless(
        trainer.epochs >= 0 && trainer.epochs <= kEpochsMax,
        "spec.trainer.epochs",
        "epochs must be from 1 to 1000000");
    for (const EnvVar& variable : trainer.env) {
        const std::string path = fmt::format("spec.trainer.env[{}]", variable.name);
        complaints.unless(
            variable.value.empty() || variable.value_from == Json(),
            path,
            "set value or valueFrom, not both");
        complaints.unless(
            !variable.name.starts_with(kOurVariables),
            path,
            "names that begin with STOKER_ are set by Stoker; choose another name");
    }
    check_quantities(trainer.resources.limits, "spec.trainer.resourcesPerNode.limits", complaints);
    check_quantities(
        trainer.resources.requests, "spec.trainer.resourcesPerNode.requests", complaints);
}

void check_keys(const TextMap& map, const std::string& path, Complaints& complaints) {
    const bool ours = std::any_of(map.begin(), map.end(), [](const auto& entry) {
        return entry.first.starts_with(kOurKeys);
    });
    complaints.unless(
        !ours, path, "keys that begin with stoker.dev/ are set by Stoker; choose another prefix");
}

void check_pod_names(const PodOverlay& pod, Complaints& complaints) {
    for (const std::string& volume : pod.volume_names) {
        complaints.unless(
            !volume.starts_with(kOurPrefix),
            fmt::format("spec.podTemplate.spec.volumes[{}]", volume),
            "names that begin with stoker- are set by Stoker; choose another name");
    }
    for (const auto& [volume, driver] : pod.csi_drivers) {
        complaints.unless(
            driver != kNodeDriver,
            fmt::format("spec.podTemplate.spec.volumes[{}]", volume),
            "volumes of driver csi.stoker.dev are added by Stoker; name the dataset in "
            "spec.datasets");
    }
    for (const std::string& name : pod.container_names) {
        complaints.unless(
            name == "trainer",
            fmt::format("spec.podTemplate.spec.containers[{}]", name),
            "only the container named trainer can be extended; more containers in the pod do not "
            "work yet");
    }
    for (const std::string& volume : pod.trainer.volume_mount_names) {
        complaints.unless(
            !volume.starts_with(kOurPrefix),
            fmt::format("spec.podTemplate.spec.containers[trainer].volumeMounts[{}]", volume),
            "volumes that begin with stoker- are mounted by Stoker");
    }
    for (const std::string& path : pod.trainer.volume_mount_paths) {
        const std::string real = std::filesystem::path{path}.lexically_normal().string() + "/";
        complaints.unless(
            !real.starts_with("/stoker/"),
            fmt::format("spec.podTemplate.spec.containers[trainer].volumeMounts[{}]", path),
            "/stoker is where Stoker mounts the cache; choose another path");
    }
    for (const std::string& name : pod.init_container_names) {
        complaints.unless(
            name != "trainer" && !name.starts_with(kOurPrefix),
            fmt::format("spec.podTemplate.spec.initContainers[{}]", name),
            "trainer and names that begin with stoker- are taken; choose another name");
    }
    for (const auto& [container, volume] : pod.init_container_mounts) {
        complaints.unless(
            !volume.starts_with(kOurPrefix),
            fmt::format(
                "spec.podTemplate.spec.initContainers[{}].volumeMounts[{}]", container, volume),
            "volumes that begin with stoker- are mounted by Stoker");
    }
}

void check_pod_template(const PodOverlay& pod, Complaints& complaints) {
    check_keys(pod.labels, "spec.podTemplate.metadata.labels", complaints);
    check_keys(pod.annotations, "spec.podTemplate.metadata.annotations", complaints);
    check_pod_names(pod, complaints);
    complaints.unless(
        !pod.host_network,
        "spec.podTemplate.spec.hostNetwork",
        "hostNetwork does not work yet; leave it out (pods have their own network)");
    complaints.unless(
        !pod.host_pid, "spec.podTemplate.spec.hostPID", "hostPID does not work yet; leave it out");
    complaints.unless(
        !pod.share_process_namespace,
        "spec.podTemplate.spec.shareProcessNamespace",
        "shareProcessNamespace does not work yet; leave it out");
    complaints.unless(
        pod.restart_policy.empty() || pod.restart_policy == "Never",
        "spec.podTemplate.spec.restartPolicy",
        "restartPolicy must be Never: all ranks restart together, as a new attempt (see "
        "runPolicy.backoffLimit)");
}

void check_run_policy(const RunPolicy& policy, Complaints& complaints) {
    complaints.unless(
        policy.backoff_limit >= 0, "spec.runPolicy.backoffLimit", "backoffLimit must be 0 or more");
    complaints.unless(
        policy.ttl_seconds_after_finished.value_or(0) >= 0,
        "spec.runPolicy.ttlSecondsAfterFinished",
        "ttlSecondsAfterFinished must be 0 or more");
    complaints.unless(
        policy.active_deadline_seconds.value_or(1) >= 1,
        "spec.runPolicy.activeDeadlineSeconds",
        "activeDeadlineSeconds must be 1 or more");
}

void check_dataset_origin(
    const JobDataset& dataset, const std::string& path, Complaints& complaints) {
    complaints.unless(
        dataset.dataset_ref.has_value() != dataset.storage_uri.has_value(),
        path,
        "set exactly one of datasetRef and storageUri");
    complaints.unless(
        !dataset.dataset_ref_namespace || is_dns_label(*dataset.dataset_ref_namespace),
        path + ".datasetRef.namespace",
        "namespace must be the name of a namespace; leave it out for the job's own");
    complaints.unless(
        !dataset.storage_uri || is_s3_uri(*dataset.storage_uri),
        path + ".storageUri",
        "storageUri must be s3://bucket/prefix; for a web server or a directory write a Dataset "
        "and "
        "name it in datasetRef");
    complaints.unless(
        !dataset.storage_uri || !has_dot_part(*dataset.storage_uri),
        path + ".storageUri",
        "storageUri must not have . or .. as a part of its path");
    complaints.unless(
        !dataset.secret_ref || dataset.storage_uri,
        path + ".secretRef",
        "secretRef belongs to storageUri; with datasetRef the Dataset names its own Secret");
    complaints.unless(
        dataset.storage_uri || (dataset.endpoint.empty() && dataset.region.empty() &&
                                !dataset.path_style && !dataset.ca_bundle),
        path,
        "endpoint, region, pathStyle and caBundle belong to storageUri; with datasetRef the "
        "Dataset has its own");
    complaints.unless(
        dataset.endpoint.empty() || domain::is_http_uri(dataset.endpoint),
        path + ".endpoint",
        "endpoint must begin with http:// or https://");
}

// `member`: the field path of `parameters`.
void check_numbers(
    Contract contract,
    const ContractParameters& parameters,
    const std::string& member,
    Complaints& complaints) {
    for (const domain::ContractParameter& rule : domain::kContractParameters) {
        const auto found = parameters.numbers.find(std::string{rule.name});
        if (!rule.is_of_the_job(contract_member(contract)) || found == parameters.numbers.end()) {
            continue;
        }
        complaints.unless(
            rule.allows(found->second),
            fmt::format("{}.{}", member, rule.name),
            fmt::format(
                "{} must be a {}number from {} to {}{}",
                rule.name,
                rule.step == 1 ? "whole " : "",
                rule.least,
                rule.most,
                rule.step == 0.5 ? ", in halves" : ""));
    }
}

void check_family(
    const ContractParameters& parameters, const std::string& member, Complaints& complaints) {
    constexpr std::string_view kImportance = contract_member(Contract::kImportance);
    constexpr std::string_view kDefault = domain::find_parameter(kImportance, "family")->words[0];
    const auto given = parameters.words.find("family");
    const std::string_view family = given == parameters.words.end() ? kDefault : given->second;
    for (const domain::ContractParameter& rule : domain::kContractParameters) {
        const auto word = parameters.words.find(std::string{rule.name});
        const bool is_word = word != parameters.words.end();
        const std::string field = fmt::format("{}.{}", member, rule.name);
        if (!rule.is_of_the_job(kImportance) ||
            !(is_word || parameters.numbers.contains(std::string{rule.name}))) {
            continue;
        }
        complaints.unless(
            rule.family.empty() || rule.family == family,
            field,
            fmt::format("{} belongs to family {}", rule.name, rule.family));
        complaints.unless(
            !is_word || (!word->second.empty() && std::ranges::count(rule.words, word->second) > 0),
            field,
            fmt::format("'{}' is not an allowed value", is_word ? word->second : ""));
    }
}

void check_parameters(const JobDataset& dataset, const std::string& path, Complaints& complaints) {
    for (const auto& [contract, parameters] : dataset.parameters) {
        const std::string member = fmt::format("{}.{}", path, contract_member(contract));
        complaints.unless(
            contract == dataset.contract,
            member,
            fmt::format(
                "{} belongs to contract {}; leave it out or choose that contract",
                contract_member(contract),
                choice_text(contract)));
        check_numbers(contract, parameters, member, complaints);
        if (contract == Contract::kImportance) {
            check_family(parameters, member, complaints);
        }
    }
}

// Folders that every container has, or that Stoker or the kubelet mounts in: nothing can be mounted
// inside the files. /var/run is a link to /run in most images.
constexpr std::string_view kTakenFolders[] = {
    "/stoker", "/dev", "/proc", "/sys", "/etc", "/run", "/var/run"};

void check_mount_path(const JobDataset& dataset, const std::string& path, Complaints& complaints) {
    const bool is_files = dataset.access == DatasetAccess::kFiles;
    complaints.unless(
        is_files == dataset.mount_path.has_value(),
        path + ".mountPath",
        is_files ? "access Files needs mountPath, the folder in which the program finds the files"
                 : "mountPath belongs to access Files; leave it out or choose that access");
    if (!dataset.mount_path) {
        return;
    }
    complaints.unless(
        is_plain_path(*dataset.mount_path),
        path + ".mountPath",
        "mountPath must be an absolute path without . and .., such as /data/train, of letters, "
        "digits, '.', '_' and '-'");
    complaints.unless(
        std::ranges::none_of(
            kTakenFolders,
            [&](std::string_view taken) { return overlap(*dataset.mount_path, taken); }),
        path + ".mountPath",
        "/stoker, /dev, /proc, /sys, /etc, /run and /var/run are taken; choose another path");
}

// Whether an earlier dataset or a volume is mounted at, in or above the path.
bool is_nested(const JobDataset& dataset, const TrainingJobSpec& spec) {
    const std::string& path = *dataset.mount_path;
    const auto is_in_the_way = [&](const std::string& other) { return overlap(path, other); };
    return std::ranges::any_of(spec.pod_template.trainer.volume_mount_paths, is_in_the_way) ||
           std::ranges::any_of(spec.datasets, [&](const JobDataset& other) {
               return &other < &dataset && other.mount_path && is_in_the_way(*other.mount_path);
           });
}

// Whether an earlier entry shows the same Dataset as files.
bool is_shown_twice(const JobDataset& dataset, const TrainingJobSpec& spec) {
    return std::ranges::any_of(spec.datasets, [&](const JobDataset& other) {
        return &other < &dataset && other.access == DatasetAccess::kFiles &&
               other.dataset_ref == dataset.dataset_ref &&
               other.dataset_ref_namespace == dataset.dataset_ref_namespace &&
               other.storage_uri == dataset.storage_uri;
    });
}

void check_files(const TrainingJobSpec& spec, Complaints& complaints) {
    for (const JobDataset& dataset : spec.datasets) {
        if (dataset.access != DatasetAccess::kFiles || !dataset.mount_path) {
            continue;
        }
        const std::string path = fmt::format("spec.datasets[{}]", dataset.name);
        complaints.unless(
            spec.cache.mode != CacheMode::kOff,
            path + ".access",
            "access Files shows the files of the cache; choose another cache.mode than Off");
        complaints.unless(
            !is_nested(dataset, spec),
            path + ".mountPath",
            "mountPath and the path of another dataset or volume mount contain each other; choose "
            "another path");
        complaints.unless(
            !is_shown_twice(dataset, spec),
            path + ".access",
            "another entry shows this dataset as files; name it once");
    }
}

void check_job_dataset(const JobDataset& dataset, Complaints& complaints) {
    const std::string path = fmt::format("spec.datasets[{}]", dataset.name);
    complaints.unless(is_dns_label(dataset.name), path + ".name", "name must be a DNS label");
    check_dataset_origin(dataset, path, complaints);
    complaints.unless(
        dataset.access == DatasetAccess::kSdk || dataset.contract == Contract::kExact,
        path + ".contract",
        "with access S3 or Files the program chooses which samples it reads, so the contract is "
        "Exact; other contracts need the library (access SDK)");
    check_mount_path(dataset, path, complaints);
    check_parameters(dataset, path, complaints);
    complaints.unless(
        dataset.sampling != Sampling::kWeighted,
        path + ".sampling",
        "sampling Weighted does not work yet; today EpochShuffle, Sequential and Unknown do");
}

void check_datasets(const std::vector<JobDataset>& datasets, Complaints& complaints) {
    complaints.unless(!datasets.empty(), "spec.datasets", "at least one dataset is needed");
    for (std::size_t i = 0; i < datasets.size(); ++i) {
        const auto same_name = [&](const JobDataset& other) {
            return other.name == datasets[i].name;
        };
        const auto end = datasets.begin() + static_cast<std::ptrdiff_t>(i);
        complaints.unless(
            std::none_of(datasets.begin(), end, same_name),
            fmt::format("spec.datasets[{}].name", datasets[i].name),
            "every dataset needs a name of its own");
        check_job_dataset(datasets[i], complaints);
    }
}

void check_cache_sizes(const CacheSpec& cache, Complaints& complaints) {
    const bool off = cache.mode == CacheMode::kOff;
    complaints.unless(
        !off || (!cache.max_bytes && !cache.min_bytes),
        "spec.cache",
        "mode Off excludes minBytes and maxBytes; leave them out or choose another mode");
    complaints.unless(
        !off || !cache.pool_ref,
        "spec.cache",
        "mode Off excludes poolRef; leave it out or choose another mode");
    complaints.unless(
        cache.mode != CacheMode::kFixed || cache.max_bytes,
        "spec.cache",
        "mode Fixed needs maxBytes");
    complaints.unless(
        cache.max_bytes != Bytes::zero(),
        "spec.cache.maxBytes",
        "maxBytes must be more than 0; to do without a cache choose mode Off");
    complaints.unless(
        !cache.min_bytes || !cache.max_bytes || *cache.min_bytes <= *cache.max_bytes,
        "spec.cache.minBytes",
        "minBytes must not be more than maxBytes");
    complaints.unless(
        cache.weight >= 1 && cache.weight <= kCacheWeightMax,
        "spec.cache.weight",
        "weight must be 1 to 1000");
}

void check_cache(const CacheSpec& cache, Complaints& complaints) {
    check_cache_sizes(cache, complaints);
    complaints.unless(
        cache.medium == Medium::kNvme,
        "spec.cache.medium",
        "medium Memory does not work yet; today NVMe does");
    complaints.unless(
        cache.warmup == Warmup::kLazy,
        "spec.cache.warmup",
        "warmup BeforeStart and Background do not work yet; to fill the cache before the job, "
        "create "
        "a DatasetWarmup");
    complaints.unless(
        cache.on_cache_failure == OnCacheFailure::kBypass,
        "spec.cache.onCacheFailure",
        "onCacheFailure Fail does not work yet; today samples come from the origin while the cache "
        "fails (Bypass)");
}

}  // namespace

std::vector<FieldError> validate(const TrainingJob& job) {
    Complaints complaints;
    check_name(job.meta, complaints);
    complaints.unless(
        !job.spec.workload_ref || !job.spec.suspend,
        "spec.suspend",
        "a job with workloadRef starts no pods; suspend the workload instead");
    check_trainer(job.spec.trainer, complaints);
    check_pod_template(job.spec.pod_template, complaints);
    check_run_policy(job.spec.run_policy, complaints);
    check_datasets(job.spec.datasets, complaints);
    check_files(job.spec, complaints);
    check_placements(job.spec, complaints);
    check_cache(job.spec.cache, complaints);
    return complaints.take();
}

}  // namespace stoker::control
