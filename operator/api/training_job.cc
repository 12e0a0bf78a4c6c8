#include "operator/api/training_job.h"

#include <limits>
#include <utility>

#include "operator/api/shared_fields.h"

namespace stoker::control {

namespace {

struct NodeCount {
    void read(const JsonReader& json, const std::string& name, std::int32_t& value) const {
        const std::int64_t nodes = json.integer(name, value);
        if (nodes < 0 || nodes > std::numeric_limits<std::int32_t>::max()) {
            json.complain(name, "is out of range");
        }
        value = static_cast<std::int32_t>(nodes);
    }
};

// Omits the field while it is 0.
struct UnlessZero {
    void read(const JsonReader& json, const std::string& name, std::int64_t& value) const {
        value = json.integer(name);
    }

    [[nodiscard]] Json write(std::int64_t value) const { return value > 0 ? Json(value) : Json(); }
};

void read_trainer(const JsonReader& container, TrainerOverlay& overlay) {
    FieldReader::read_into<ContainerSettings>(container, overlay);
    container.each("volumeMounts", [&](const JsonReader& mount) {
        overlay.volume_mounts.push_back(mount.raw_self());
        overlay.volume_mount_names.push_back(mount.text("name"));
        overlay.volume_mount_paths.push_back(mount.text("mountPath"));
    });
}

void read_parameters(const JsonReader& item, JobDataset& dataset) {
    for (const Contract contract :
         {Contract::kWindowed, Contract::kImportance, Contract::kReplicate}) {
        const JsonReader member = item.object(std::string{contract_member(contract)});
        if (!member.present()) {
            continue;
        }
        ContractParameters& parameters = dataset.parameters[contract];
        for (const domain::ContractParameter& row : domain::kContractParameters) {
            const std::string name{row.name};
            if (!row.is_of_the_job(contract_member(contract))) {
                continue;
            }
            if (row.is_word()) {
                if (auto value = member.maybe_text(name)) {
                    parameters.words.emplace(name, *std::move(value));
                }
            } else if (const auto value = member.maybe_number(name)) {
                parameters.numbers.emplace(name, *value);
            }
        }
    }
}

}  // namespace

template <>
inline constexpr auto kFields<TrainerSpec> = std::tuple{
    field("image", &TrainerSpec::image),
    field("command", &TrainerSpec::command),
    field("args", &TrainerSpec::args),
    field("env", &TrainerSpec::env),
    field("numNodes", &TrainerSpec::node_count, NodeCount{}),
    field("numProcPerNode", &TrainerSpec::processes_per_node, IntOrText{}),
    field("epochs", &TrainerSpec::epochs),
    field("resourcesPerNode", &TrainerSpec::resources)};

template <>
inline constexpr auto kAlsoRead<TrainerOverlay> = &read_trainer;

namespace {

void read_pod_lists(const JsonReader& pod, PodOverlay& overlay) {
    const JsonReader spec = pod.object("spec");
    FieldReader::read_into<PodScheduling>(spec, overlay);
    spec.each("volumes", [&](const JsonReader& volume) {
        overlay.volumes.push_back(volume.raw_self());
        const std::string name = volume.text("name");
        overlay.volume_names.push_back(name);
        const JsonReader host_path = volume.object("hostPath");
        if (host_path.present()) {
            overlay.host_paths.emplace_back(name, host_path.text("path"));
        }
        const JsonReader csi = volume.object("csi");
        if (csi.present()) {
            overlay.csi_drivers.emplace_back(name, csi.text("driver"));
        }
    });
    spec.each("containers", [&](const JsonReader& container) {
        overlay.container_names.push_back(container.text("name"));
        FieldReader::read_into(container, overlay.trainer);
    });
    spec.each("initContainers", [&](const JsonReader& container) {
        overlay.init_containers.push_back(container.raw_self());
        const std::string name = container.text("name");
        overlay.init_container_names.push_back(name);
        container.each("volumeMounts", [&](const JsonReader& mount) {
            overlay.init_container_mounts.emplace_back(name, mount.text("name"));
        });
    });
}

}  // namespace

template <>
inline constexpr auto kFields<PodOverlay> = std::tuple{
    field("metadata.labels", &PodOverlay::labels),
    field("metadata.annotations", &PodOverlay::annotations),
    field("spec.serviceAccountName", &PodOverlay::service_account_name),
    field("spec.automountServiceAccountToken", &PodOverlay::automount_service_account_token),
    field("spec.terminationGracePeriodSeconds", &PodOverlay::termination_grace_period_seconds),
    field("spec.hostNetwork", &PodOverlay::host_network),
    field("spec.hostPID", &PodOverlay::host_pid),
    field("spec.hostIPC", &PodOverlay::host_ipc),
    field("spec.shareProcessNamespace", &PodOverlay::share_process_namespace),
    field("spec.restartPolicy", &PodOverlay::restart_policy)};
template <>
inline constexpr auto kAlsoRead<PodOverlay> = &read_pod_lists;

template <>
inline constexpr auto kFields<RunPolicy> = table(
    field("backoffLimit", &RunPolicy::backoff_limit),
    field("ttlSecondsAfterFinished", &RunPolicy::ttl_seconds_after_finished),
    field("activeDeadlineSeconds", &RunPolicy::active_deadline_seconds));

template <>
inline constexpr auto kFields<ClairvoyantSpec> = table(
    field("order", &ClairvoyantSpec::order),
    field("seed", &ClairvoyantSpec::seed),
    field("dropLast", &ClairvoyantSpec::drop_last));

template <>
inline constexpr auto kFields<JobDataset> = std::tuple{
    field("name", &JobDataset::name),
    field("datasetRef", &JobDataset::dataset_ref, TextOf{"name"}),
    field("datasetRef.namespace", &JobDataset::dataset_ref_namespace),
    field("storageUri", &JobDataset::storage_uri),
    field("secretRef", &JobDataset::secret_ref, TextOf{"name"}),
    field("endpoint", &JobDataset::endpoint),
    field("region", &JobDataset::region),
    field("pathStyle", &JobDataset::path_style),
    field("caBundle", &JobDataset::ca_bundle),
    field("mountPath", &JobDataset::mount_path),
    field("access", &JobDataset::access),
    field("sampling", &JobDataset::sampling),
    field("contract", &JobDataset::contract),
    field("placement", &JobDataset::placement),
    field("clairvoyant", &JobDataset::clairvoyant)};
template <>
inline constexpr auto kAlsoRead<JobDataset> = &read_parameters;

template <>
inline constexpr auto kFields<ProfilingSpec> = table(
    field("mode", &ProfilingSpec::mode),
    field("steps", &ProfilingSpec::steps),
    field("maxSeconds", &ProfilingSpec::max_seconds));

template <>
inline constexpr auto kFields<CacheSpec> = table(
    field("mode", &CacheSpec::mode),
    field("poolRef", &CacheSpec::pool_ref, TextOf{"name"}),
    field("maxBytes", &CacheSpec::max_bytes, Quantity{}),
    field("minBytes", &CacheSpec::min_bytes, Quantity{}),
    field("weight", &CacheSpec::weight),
    field("medium", &CacheSpec::medium),
    field("evictionPolicy", &CacheSpec::eviction_policy),
    field("warmup", &CacheSpec::warmup),
    field("profiling", &CacheSpec::profiling),
    field("onCacheFailure", &CacheSpec::on_cache_failure));

template <>
inline constexpr auto kFields<WorkloadRef> = table(
    field("apiVersion", &WorkloadRef::api_version),
    field("kind", &WorkloadRef::kind),
    field("name", &WorkloadRef::name),
    field("uid", &WorkloadRef::uid));

template <>
inline constexpr auto kFields<TrainingJobSpec> = table(
    field("workloadRef", &TrainingJobSpec::workload_ref),
    field("trainer", &TrainingJobSpec::trainer),
    field("podTemplate", &TrainingJobSpec::pod_template),
    field("runPolicy", &TrainingJobSpec::run_policy),
    field("suspend", &TrainingJobSpec::suspend),
    field("datasets", &TrainingJobSpec::datasets),
    field("cache", &TrainingJobSpec::cache));

template <>
inline constexpr auto kFields<ChildJobStatus> = table(
    field("name", &ChildJobStatus::name),
    field("active", &ChildJobStatus::active),
    field("ready", &ChildJobStatus::ready),
    field("succeeded", &ChildJobStatus::succeeded),
    field("failed", &ChildJobStatus::failed));

template <>
inline constexpr auto kFields<BenefitStatus> = table(
    field("secondsSavedPerEpoch", &BenefitStatus::seconds_saved_per_epoch),
    field("perGiB", &BenefitStatus::per_gib),
    field("marginalPerGiB", &BenefitStatus::marginal_per_gib),
    field("method", &BenefitStatus::method),
    field("gpuSecondsPerGiBHour", &BenefitStatus::gpu_seconds_per_gib_hour),
    field("speedup", &BenefitStatus::speedup));

template <>
inline constexpr auto kFields<CacheStatus> = table(
    field("pool", &CacheStatus::pool),
    field("wantedBytes", &CacheStatus::wanted_bytes),
    field("allocatedBytes", &CacheStatus::allocated_bytes),
    field("borrowedBytes", &CacheStatus::borrowed_bytes),
    field("usedBytes", &CacheStatus::used_bytes),
    field("cacheBytes", &CacheStatus::cache_bytes),
    field("originBytes", &CacheStatus::origin_bytes),
    field("originBytesPerSecond", &CacheStatus::origin_bytes_per_second),
    field("hitRatio", &CacheStatus::hit_ratio),
    field("sampledAt", &CacheStatus::sampled_at),
    field("benefit", &CacheStatus::benefit));

template <>
inline constexpr auto kFields<ProfileStatus> = table(
    field("samplesPerSecondNeeded", &ProfileStatus::samples_per_second_needed),
    field("samplesPerSecondRemote", &ProfileStatus::samples_per_second_remote),
    field("computeSecondsPerEpoch", &ProfileStatus::compute_seconds_per_epoch),
    field("datasetBytes", &ProfileStatus::dataset_bytes),
    field("verdict", &ProfileStatus::verdict),
    field("waitShare", &ProfileStatus::wait_share),
    field("confidence", &ProfileStatus::confidence));

template <>
inline constexpr auto kFields<ProgressStatus> = table(
    field("epoch", &ProgressStatus::epoch),
    field("percentage", &ProgressStatus::percentage),
    field("samplesRead", &ProgressStatus::samples_read),
    field("estimatedRemainingSeconds", &ProgressStatus::estimated_remaining_seconds));

template <>
inline constexpr auto kFields<AttemptPool> =
    table(field("attempt", &AttemptPool::attempt), field("name", &AttemptPool::name));

template <>
inline constexpr auto kFields<JobDatasetStatus> = table(
    field("name", &JobDatasetStatus::name),
    field("uid", &JobDatasetStatus::uid),
    field("totalBytes", &JobDatasetStatus::total_bytes),
    field("samples", &JobDatasetStatus::samples),
    field("allocatedBytes", &JobDatasetStatus::allocated_bytes),
    field("usedBytes", &JobDatasetStatus::used_bytes),
    field("revision", &JobDatasetStatus::revision),
    field("revisionAttempt", &JobDatasetStatus::revision_attempt, UnlessZero{}),
    field("changedKey", &JobDatasetStatus::changed_key));

template <>
inline constexpr auto kFields<TrainingJobColumns> = table(
    field("cache", &TrainingJobColumns::cache),
    field("hit", &TrainingJobColumns::hit),
    field("benefit", &TrainingJobColumns::benefit),
    field("borrowed", &TrainingJobColumns::borrowed),
    field("origin", &TrainingJobColumns::origin));

template <>
inline constexpr auto kFields<TrainingJobStatus> = table(
    field("observedGeneration", &TrainingJobStatus::observed_generation),
    field("conditions", &TrainingJobStatus::conditions),
    field("columns", &TrainingJobStatus::columns),
    field("startTime", &TrainingJobStatus::start_time),
    field("completionTime", &TrainingJobStatus::completion_time),
    field("activeSeconds", &TrainingJobStatus::active_seconds),
    field("activeSince", &TrainingJobStatus::active_since),
    field("attempt", &TrainingJobStatus::attempt),
    field("restarts", &TrainingJobStatus::restarts),
    field("lastRestartTime", &TrainingJobStatus::last_restart_time),
    field("attemptPool", &TrainingJobStatus::attempt_pool),
    field("jobs", &TrainingJobStatus::jobs),
    field("cache", &TrainingJobStatus::cache),
    field("profile", &TrainingJobStatus::profile),
    field("progress", &TrainingJobStatus::progress),
    field("datasets", &TrainingJobStatus::datasets));

template <>
inline constexpr auto kFields<TrainingJob> = table(
    field("metadata", &TrainingJob::meta),
    field("spec", &TrainingJob::spec),
    field("status", &TrainingJob::status));

template Result<TrainingJob> read_document<TrainingJob>(const Json& json);
template std::set<std::string> known_fields<TrainingJob>();

Json status_patch(const TrainingJob& job) {
    return own_status_body("TrainingJob", job.meta, FieldWriter::write_fields(job.status));
}

ObjectKey dataset_key(const std::string& job_namespace, const JobDataset& entry) {
    return {entry.dataset_ref_namespace.value_or(job_namespace), entry.dataset_ref.value_or("")};
}

}  // namespace stoker::control
