#include "operator/api/training_job.h"

#include <limits>
#include <utility>

#include "operator/api/json_reader.h"

namespace stoker::control {

namespace {

EnvVar read_env_var(const JsonReader& item) {
    return {item.text("name"), item.text("value"), item.raw("valueFrom")};
}

TrainerSpec read_trainer(const JsonReader& trainer) {
    TrainerSpec result;
    result.image = trainer.text("image");
    result.command = trainer.texts("command");
    result.args = trainer.texts("args");
    trainer.each("env", [&](const JsonReader& item) { result.env.push_back(read_env_var(item)); });
    const std::int64_t nodes = trainer.integer("numNodes", 1);
    if (nodes < 0 || nodes > std::numeric_limits<std::int32_t>::max()) {
        trainer.complain("numNodes", "is out of range");
    }
    result.node_count = static_cast<std::int32_t>(nodes);
    result.processes_per_node = trainer.int_or_text("numProcPerNode", "auto");
    result.epochs = trainer.integer("epochs");
    const JsonReader resources = trainer.object("resourcesPerNode");
    result.resources.limits = resources.quantity_map("limits");
    result.resources.requests = resources.quantity_map("requests");
    return result;
}

void read_trainer_overlay(const JsonReader& container, TrainerOverlay& overlay) {
    overlay.image_pull_policy = container.text("imagePullPolicy");
    overlay.working_dir = container.text("workingDir");
    overlay.env_from = container.raw_items("envFrom");
    overlay.ports = container.raw_items("ports");
    overlay.security_context = container.raw("securityContext");
    container.each("volumeMounts", [&](const JsonReader& mount) {
        overlay.volume_mounts.push_back(mount.raw_self());
        overlay.volume_mount_names.push_back(mount.text("name"));
        overlay.volume_mount_paths.push_back(mount.text("mountPath"));
    });
}

void read_pod_containers(const JsonReader& spec, PodOverlay& overlay) {
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
        read_trainer_overlay(container, overlay.trainer);
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

PodOverlay read_pod_overlay(const JsonReader& pod) {
    PodOverlay result;
    const JsonReader meta = pod.object("metadata");
    result.labels = meta.text_map("labels");
    result.annotations = meta.text_map("annotations");
    const JsonReader spec = pod.object("spec");
    result.service_account_name = spec.text("serviceAccountName");
    result.automount_service_account_token = spec.maybe_flag("automountServiceAccountToken");
    result.node_selector = spec.text_map("nodeSelector");
    result.affinity = spec.raw("affinity");
    result.tolerations = spec.raw_items("tolerations");
    result.topology_spread_constraints = spec.raw_items("topologySpreadConstraints");
    result.priority_class_name = spec.text("priorityClassName");
    result.scheduler_name = spec.text("schedulerName");
    result.runtime_class_name = spec.text("runtimeClassName");
    spec.each("imagePullSecrets", [&](const JsonReader& secret) {
        result.image_pull_secrets.push_back(secret.text("name"));
    });
    result.security_context = spec.raw("securityContext");
    result.termination_grace_period_seconds = spec.maybe_integer("terminationGracePeriodSeconds");
    read_pod_containers(spec, result);
    result.host_network = spec.flag("hostNetwork");
    result.host_pid = spec.flag("hostPID");
    result.host_ipc = spec.flag("hostIPC");
    result.share_process_namespace = spec.flag("shareProcessNamespace");
    result.restart_policy = spec.text("restartPolicy");
    return result;
}

RunPolicy read_run_policy(const JsonReader& policy) {
    RunPolicy result;
    result.backoff_limit = policy.integer("backoffLimit", result.backoff_limit);
    result.ttl_seconds_after_finished = policy.maybe_integer("ttlSecondsAfterFinished");
    result.active_deadline_seconds = policy.maybe_integer("activeDeadlineSeconds");
    return result;
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

JobDataset read_job_dataset(const JsonReader& item) {
    JobDataset result;
    result.name = item.text("name");
    const JsonReader reference = item.object("datasetRef");
    if (reference.present()) {
        result.dataset_ref = reference.text("name");
        result.dataset_ref_namespace = reference.maybe_text("namespace");
    }
    result.storage_uri = item.maybe_text("storageUri");
    const JsonReader secret = item.object("secretRef");
    if (secret.present()) {
        result.secret_ref = secret.text("name");
    }
    result.endpoint = item.text("endpoint");
    result.region = item.text("region");
    result.path_style = item.maybe_flag("pathStyle");
    result.ca_bundle = read_ca_bundle(item);
    result.mount_path = item.maybe_text("mountPath");
    result.access = item.choice("access", DatasetAccess::kSdk);
    result.sampling = item.choice("sampling", Sampling::kEpochShuffle);
    result.contract = item.choice("contract", Contract::kExact);
    read_parameters(item, result);
    return result;
}

CacheSpec read_cache(const JsonReader& cache) {
    CacheSpec result;
    result.mode = cache.choice("mode", CacheMode::kAuto);
    const JsonReader pool = cache.object("poolRef");
    if (pool.present()) {
        result.pool_ref = pool.text("name");
    }
    result.max_bytes = cache.maybe_bytes("maxBytes");
    result.min_bytes = cache.maybe_bytes("minBytes");
    result.weight = cache.maybe_integer("weight").value_or(1);
    result.medium = cache.choice("medium", Medium::kNvme);
    result.eviction_policy = cache.choice("evictionPolicy", EvictionPolicy::kAuto);
    result.warmup = cache.choice("warmup", Warmup::kLazy);
    const JsonReader profiling = cache.object("profiling");
    if (profiling.present()) {
        result.profiling = ProfilingSpec{
            profiling.text("mode"),
            profiling.maybe_integer("steps"),
            profiling.maybe_integer("maxSeconds")};
    }
    result.on_cache_failure = cache.choice("onCacheFailure", OnCacheFailure::kBypass);
    return result;
}

TrainingJobSpec read_spec(const JsonReader& spec) {
    TrainingJobSpec result;
    result.trainer = read_trainer(spec.object("trainer"));
    result.pod_template = read_pod_overlay(spec.object("podTemplate"));
    result.run_policy = read_run_policy(spec.object("runPolicy"));
    result.suspend = spec.flag("suspend");
    spec.each("datasets", [&](const JsonReader& item) {
        result.datasets.push_back(read_job_dataset(item));
    });
    result.cache = read_cache(spec.object("cache"));
    return result;
}

CacheStatus read_cache_status(const JsonReader& cache) {
    CacheStatus result;
    result.pool = cache.text("pool");
    result.wanted_bytes = cache.integer("wantedBytes");
    result.allocated_bytes = cache.integer("allocatedBytes");
    result.borrowed_bytes = cache.integer("borrowedBytes");
    result.used_bytes = cache.integer("usedBytes");
    result.cache_bytes = cache.integer("cacheBytes");
    result.origin_bytes = cache.integer("originBytes");
    result.origin_bytes_per_second = cache.integer("originBytesPerSecond");
    result.hit_ratio = cache.text("hitRatio");
    result.sampled_at = cache.maybe_time("sampledAt");
    const JsonReader benefit = cache.object("benefit");
    if (benefit.present()) {
        result.benefit = BenefitStatus{
            benefit.text("secondsSavedPerEpoch"),
            benefit.text("perGiB"),
            benefit.text("marginalPerGiB"),
            benefit.text("method"),
            benefit.text("gpuSecondsPerGiBHour"),
            benefit.text("speedup")};
    }
    return result;
}

TrainingJobColumns read_columns(const JsonReader& columns) {
    return {
        columns.text("cache"),
        columns.text("hit"),
        columns.text("benefit"),
        columns.text("borrowed"),
        columns.text("origin")};
}

void read_measured(const JsonReader& status, TrainingJobStatus& result) {
    const JsonReader cache = status.object("cache");
    if (cache.present()) {
        result.cache = read_cache_status(cache);
    }
    const JsonReader profile = status.object("profile");
    if (profile.present()) {
        result.profile = ProfileStatus{
            profile.integer("samplesPerSecondNeeded"),
            profile.integer("samplesPerSecondRemote"),
            profile.integer("computeSecondsPerEpoch"),
            profile.integer("datasetBytes"),
            profile.text("verdict"),
            profile.text("waitShare"),
            profile.text("confidence")};
    }
    const JsonReader progress = status.object("progress");
    if (progress.present()) {
        result.progress = ProgressStatus{
            progress.integer("epoch"),
            progress.integer("percentage"),
            progress.integer("samplesRead"),
            progress.maybe_integer("estimatedRemainingSeconds")};
    }
    status.each("datasets", [&](const JsonReader& item) {
        result.datasets.push_back(
            {item.text("name"),
             item.text("uid"),
             item.integer("totalBytes"),
             item.integer("samples"),
             item.integer("allocatedBytes"),
             item.integer("usedBytes"),
             item.text("revision"),
             item.integer("revisionAttempt"),
             item.text("changedKey")});
    });
}

TrainingJobStatus read_status(const JsonReader& status) {
    TrainingJobStatus result;
    result.observed_generation = status.integer("observedGeneration");
    result.conditions = read_conditions(status);
    result.columns = read_columns(status.object("columns"));
    result.start_time = status.maybe_time("startTime");
    result.completion_time = status.maybe_time("completionTime");
    result.active_seconds = status.integer("activeSeconds");
    result.active_since = status.maybe_time("activeSince");
    result.attempt = status.integer("attempt");
    result.restarts = status.integer("restarts");
    result.last_restart_time = status.maybe_time("lastRestartTime");
    const JsonReader pool = status.object("attemptPool");
    if (pool.present()) {
        result.attempt_pool = AttemptPool{pool.integer("attempt"), pool.text("name")};
    }
    status.each("jobs", [&](const JsonReader& item) {
        result.jobs.push_back(
            {item.text("name"),
             item.integer("active"),
             item.integer("ready"),
             item.integer("succeeded"),
             item.integer("failed")});
    });
    read_measured(status, result);
    return result;
}

TrainingJob read_training_job(const JsonReader& root) {
    return {read_meta(root), read_spec(root.object("spec")), read_status(root.object("status"))};
}

}  // namespace

Result<TrainingJob> parse_training_job(std::string_view json) {
    return read_document(json, read_training_job);
}

ObjectKey dataset_key(const std::string& job_namespace, const JobDataset& entry) {
    return {entry.dataset_ref_namespace.value_or(job_namespace), entry.dataset_ref.value_or("")};
}

std::set<std::string> training_job_fields() {
    return record_fields(read_training_job);
}

}  // namespace stoker::control
