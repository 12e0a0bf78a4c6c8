#include "operator/core/workload/build_pod.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "common/domain/http_uri.h"
#include "operator/api/pod.h"
#include "operator/api/sidecar_config.h"
#include "operator/core/workload/pod_volumes.h"
#include "operator/core/workload/trainer_credentials.h"

namespace stoker::control {

namespace {

// Trainers run as any user; only the pod can reach the socket's folder.
constexpr std::string_view kSocketMode = "0666";
constexpr std::string_view kFileScheme = "file://";
constexpr std::string_view kDefaultRegion = "us-east-1";  // as for the sidecar
constexpr std::string_view kS3AccessKey = "stoker";

// The first dataset that the program reads with an S3 client, or nullptr.
const ResolvedDataset* find_s3_dataset(const JobInput& input) {
    const auto found =
        std::ranges::find(input.datasets, DatasetAccess::kS3, &ResolvedDataset::access);
    return found == input.datasets.end() ? nullptr : &*found;
}

bool has_s3_endpoint(const JobInput& input) {
    return has_cache(input) && find_s3_dataset(input) != nullptr;
}

// Only the pod's own containers reach its loopback addresses.
std::string s3_listen(const JobInput& input) {
    return fmt::format("127.0.0.1:{}", input.settings.s3_port);
}

std::string s3_url(const JobInput& input) {
    return "http://" + s3_listen(input);
}

// The loopback endpoint's secret key differs for each pod, and nothing stores it.
Json s3_secret_key() {
    return from_field("metadata.uid");
}

OriginConfig origin_of(const JobInput& input, const ResolvedDataset& dataset) {
    const DatasetSource& source = dataset.source;
    OriginConfig result;
    result.uri = source.storage_uri;
    if (is_directory(dataset)) {
        // The whole volume is mounted, so the URI's path is appended to the mount point.
        result.uri = fmt::format(
            "{}{}{}",
            kFileScheme,
            path_of(kOriginDirectory, dataset.name),
            source.storage_uri.substr(kFileScheme.size()));
    }
    result.index = source.index;
    result.endpoint = source.endpoint;
    result.region = source.region;
    result.path_style = source.path_style;
    result.format = dataset.format;
    result.block_size = dataset.block_size;
    result.records = dataset.records;
    if (source.secret_ref) {
        // If the directory has no Secret, the sidecar knows that it lacks a key.
        result.credentials_directory = path_of(kCredentialsDirectory, dataset.name);
        result.authenticate =
            domain::is_http_uri(source.storage_uri) && uses_secret(input, dataset);
    }
    if (source.ca_bundle) {
        result.ca_file = path_of(path_of(kCaDirectory, dataset.name), source.ca_bundle->key);
    }
    return result;
}

// Guests' sidecars never lead, so other nodes fetch nothing from them.
bool shares_by_peers(const JobInput& input, const ResolvedDataset& dataset) {
    return input.settings.sidecar_peer_port != 0 && dataset.peers && !is_foreign(input, dataset);
}

// nullopt: no dataset of this pod is shared.
std::optional<std::int32_t> peer_port(const JobInput& input) {
    const bool shares = std::ranges::any_of(
        input.datasets, [&](const auto& dataset) { return shares_by_peers(input, dataset); });
    return shares ? std::optional(input.settings.sidecar_peer_port) : std::nullopt;
}

// Ranks on several nodes agree on an older listing only if they can take it from each other. Once an
// attempt has failed, each one lists anew, because an object may have changed; a drained node is no
// failure. Guests never list.
std::optional<std::int64_t> listing_age_seconds_max(
    const JobInput& input, const ResolvedDataset& dataset) {
    if (!dataset.listing_age_seconds_max || is_foreign(input, dataset)) {
        return std::nullopt;
    }
    const bool is_one_pod = !input.job.spec.workload_ref && input.job.spec.trainer.node_count <= 1;
    const bool can_agree =
        is_one_pod || (is_pinned(input.job, dataset) && shares_by_peers(input, dataset));
    return can_agree && input.job.status.restarts == 0 ? dataset.listing_age_seconds_max : 0;
}

std::vector<DatasetConfig> dataset_configs(const JobInput& input) {
    std::vector<DatasetConfig> result;
    for (const ResolvedDataset& dataset : input.datasets) {
        const std::string directory =
            has_cache(input) ? path_of(kNodeDirectory, dataset.name) : std::string{};
        result.push_back(
            {dataset.name,
             dataset.uid,
             directory,
             files_socket(input, dataset),
             origin_of(input, dataset),
             dataset.contract,
             dataset.parameters,
             input.job.spec.cache.eviction_policy,
             is_foreign(input, dataset),
             is_pinned(input.job, dataset),
             shares_by_peers(input, dataset),
             listing_age_seconds_max(input, dataset)});
    }
    return result;
}

// Variables for S3 clients of the trainer: the pod's endpoint with its own key, or without a cache
// the origin. `source`: of the first dataset with access S3.
void add_s3_client(const JobInput& input, const DatasetSource& source, std::vector<EnvVar>& env) {
    const bool has_endpoint = has_s3_endpoint(input);
    const std::string url = has_endpoint ? s3_url(input) : source.endpoint;
    const std::string region = source.region.empty() ? std::string{kDefaultRegion} : source.region;
    for (const std::string name : {"AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"}) {
        if (!url.empty()) {
            env.push_back({name, url, {}});
        }
    }
    for (const std::string name : {"AWS_REGION", "AWS_DEFAULT_REGION"}) {
        env.push_back({name, region, {}});
    }
    if (has_endpoint) {
        env.push_back({"AWS_ACCESS_KEY_ID", std::string{kS3AccessKey}, {}});
        env.push_back({"AWS_SECRET_ACCESS_KEY", "", s3_secret_key()});
    } else {
        add_credentials(input, env);
    }
}

// Removes the variables that the user has set.
void drop_what_the_user_set(const TrainingJob& job, std::vector<EnvVar>& env) {
    std::set<std::string> taken;
    for (const EnvVar& variable : job.spec.trainer.env) {
        taken.insert(variable.name);
    }
    std::erase_if(env, [&](const EnvVar& variable) { return taken.contains(variable.name); });
}

std::vector<EnvVar> identity_env(const JobInput& input) {
    std::vector<EnvVar> result = {
        {"POD_NAMESPACE", "", from_field("metadata.namespace")},
        {"POD_NAME", "", from_field("metadata.name")},
        {"NODE_NAME", "", from_field("spec.nodeName")},
        {"POD_IP", "", from_field("status.podIP")}};
    if (!input.foreign) {
        result.push_back(
            {"ATTEMPT_UID",
             "",
             from_field("metadata.labels['batch.kubernetes.io/controller-uid']")});
        return result;
    }
    result.push_back({"ATTEMPT_UID", input.foreign->attempt_uid, {}});
    if (input.foreign->rank) {
        result.push_back(*input.foreign->rank);
    }
    return result;
}

// The trainer's proxy settings, or the operator's if the trainer has none.
void add_proxy(const JobInput& input, std::vector<EnvVar>& env) {
    std::ranges::copy_if(input.job.spec.trainer.env, std::back_inserter(env), [](const EnvVar& it) {
        return std::ranges::count(kProxyVariables, it.name) > 0;
    });
    for (const auto& [name, value] : input.settings.sidecar_proxy) {
        if (std::ranges::find(env, name, &EnvVar::name) == env.end()) {
            env.push_back({name, literal(value), {}});
        }
    }
}

std::vector<EnvVar> config_env(const JobInput& input) {
    std::vector<EnvVar> result = identity_env(input);
    result.push_back({"STOKER_SIDECAR_CONFIG", literal(to_json(sidecar_config(input)).text()), {}});
    return result;
}

// The keys with which a program of another controller reads the origin itself.
void add_own_keys(const JobInput& input, std::vector<EnvVar>& env) {
    if (input.foreign) {
        std::ranges::copy_if(
            input.foreign->s3_keys, std::back_inserter(env), [](const EnvVar& key) {
                return key.name.starts_with("AWS_");
            });
    }
}

std::vector<EnvVar> sidecar_env(const JobInput& input) {
    std::vector<EnvVar> result = config_env(input);
    if (!input.settings.control_ca_pem.empty()) {
        result.push_back({"STOKER_CONTROL_CA", input.settings.control_ca_pem, {}});
    }
    add_own_keys(input, result);
    add_proxy(input, result);
    return result;
}

ContainerManifest build_sidecar(const JobInput& input) {
    const JobSettings& settings = input.settings;
    ContainerManifest result;
    result.name = kSidecarContainer;
    result.image = settings.sidecar_image;
    result.image_pull_policy = settings.sidecar_image_pull_policy;
    result.env = sidecar_env(input);
    result.resources = settings.sidecar_resources;
    result.mounts = sidecar_mounts(input);
    result.restricted = true;
    result.always_running = true;
    result.http_port = settings.sidecar_http_port;
    result.peer_port = peer_port(input);
    result.startup_probe = StartupProbe{"/readyz", settings.sidecar_http_port};
    return result;
}

// The key that clients of the S3 endpoint sign with: the program's own, or one of this pod.
void add_s3_keys(const JobInput& input, std::vector<EnvVar>& env) {
    if (input.foreign && !input.foreign->s3_keys.empty()) {
        const std::vector<EnvVar>& keys = input.foreign->s3_keys;
        env.insert(env.end(), keys.begin(), keys.end());
        return;
    }
    env.push_back({"STOKER_S3_ACCESS_KEY", std::string{kS3AccessKey}, {}});
    env.push_back({"STOKER_S3_SECRET_KEY", "", s3_secret_key()});
}

// A container that runs `program` of the sidecar's image with the sidecar's settings.
ContainerManifest build_attached(const JobInput& input, std::string_view program) {
    ContainerManifest result;
    result.name = program;
    result.image = input.settings.sidecar_image;
    result.image_pull_policy = input.settings.sidecar_image_pull_policy;
    result.command = {std::string{program}};
    result.env = config_env(input);
    result.restricted = true;
    result.always_running = true;
    return result;
}

// The S3 endpoint is a process of its own, so it passes requests on to the origin while the sidecar
// is dead. The kubelet cannot reach a loopback address, so the probe connects from inside.
ContainerManifest build_s3_endpoint(const JobInput& input) {
    const JobSettings& settings = input.settings;
    ContainerManifest result = build_attached(input, kS3Container);
    add_s3_keys(input, result.env);
    add_proxy(input, result.env);
    result.resources = settings.s3_resources;
    result.mounts = s3_mounts(input);
    result.startup_probe = StartupProbe{};
    result.startup_probe->command = {
        "bash", "-c", fmt::format(": </dev/tcp/127.0.0.1/{}", settings.s3_port)};
    return result;
}

// A process of its own, as the S3 endpoint is: the files outlive the sidecar. Programs that open a
// file before it serves wait, so it needs no probe.
ContainerManifest build_files(const JobInput& input) {
    ContainerManifest result = build_attached(input, kFilesContainer);
    add_own_keys(input, result.env);
    add_proxy(input, result.env);
    result.resources = input.settings.files_resources;
    result.mounts = files_mounts(input);
    return result;
}

// The trainer's library reads the origin itself while the sidecar is dead. If the trainer's only key
// is that of the pod's S3 endpoint, it reads through this endpoint.
std::vector<DatasetConfig> trainer_datasets(const JobInput& input) {
    std::vector<DatasetConfig> result = dataset_configs(input);
    const bool has_own_key =
        std::ranges::count(input.job.spec.trainer.env, "AWS_ACCESS_KEY_ID", &EnvVar::name) > 0;
    if (!has_s3_endpoint(input) || has_own_key) {
        return result;
    }
    for (DatasetConfig& dataset : result) {
        if (dataset.origin.uri.starts_with("s3://")) {
            dataset.origin.endpoint = s3_url(input);
            dataset.origin.path_style = true;
            dataset.origin.ca_file.clear();
        }
    }
    return result;
}

std::vector<EnvVar> trainer_env(const JobInput& input) {
    std::vector<EnvVar> result;
    if (!input.foreign) {
        result = rendezvous_env(input.job, input.attempt);
    }
    if (const ResolvedDataset* dataset = find_s3_dataset(input)) {
        add_s3_client(input, dataset->source, result);
    } else if (!input.foreign && !has_only_files(input)) {
        add_credentials(input, result);
    }
    if (!input.foreign && !has_only_files(input)) {
        add_http_credentials(input, result);
    }
    drop_what_the_user_set(input.job, result);
    if (has_cache(input)) {
        result.push_back({"STOKER_SOCKET", std::string{kSocketPath}, {}});
    }
    result.push_back({"STOKER_JOB", uid_in_pods(input.job), {}});
    result.push_back({"STOKER_DATASETS", literal(to_json(trainer_datasets(input)).text()), {}});
    result.push_back({"STOKER_ATTEMPT", std::to_string(input.attempt), {}});
    if (input.job.spec.trainer.epochs > 0) {
        result.push_back({"STOKER_EPOCHS", std::to_string(input.job.spec.trainer.epochs), {}});
    }
    const std::vector<EnvVar>& users = input.job.spec.trainer.env;
    result.insert(result.end(), users.begin(), users.end());
    return result;
}

ContainerManifest build_trainer(const JobInput& input) {
    const TrainerOverlay& overlay = input.job.spec.pod_template.trainer;
    ContainerManifest result{
        static_cast<const ContainerProgram&>(input.job.spec.trainer),
        static_cast<const ContainerSettings&>(overlay),
        std::string{kTrainerContainer}};
    result.env = trainer_env(input);
    result.user_mounts = overlay.volume_mounts;
    result.mounts = trainer_mounts(input);
    return result;
}

std::vector<ContainerManifest> build_init_containers(const JobInput& input) {
    std::vector<ContainerManifest> result;
    if (has_cache(input)) {
        result.push_back(build_sidecar(input));
    }
    if (has_s3_endpoint(input)) {
        result.push_back(build_s3_endpoint(input));
    }
    if (has_files(input)) {
        result.push_back(build_files(input));
    }
    return result;
}

}  // namespace

SidecarConfig sidecar_config(const JobInput& input) {
    SidecarConfig result;
    result.socket = kSocketPath;
    result.socket_mode = kSocketMode;
    result.datasets = dataset_configs(input);
    result.window_bytes = input.settings.window_bytes;
    result.reserved_free_percent = input.pool.reserved_free_percent;
    result.http_listen = fmt::format("[::]:{}", input.settings.sidecar_http_port);
    result.http_readers = input.settings.metrics_readers;
    result.control_endpoint = input.settings.control_address;
    if (const auto port = peer_port(input)) {
        result.peers_listen = fmt::format("[::]:{}", *port);
    }
    if (has_s3_endpoint(input)) {
        result.s3_listen = s3_listen(input);
    }
    result.control_token_file = fmt::format("{}/token", kTokenDirectory);
    result.training_job = input.job.meta.name;
    result.training_job_uid = uid_in_pods(input.job);
    result.end_when_idle_seconds = input.end_when_idle_seconds;
    return result;
}

PodManifest build_filler_pod(const JobInput& input) {
    PodManifest result;
    result.trainer = build_sidecar(input);
    result.trainer.always_running = false;
    result.volumes = build_volumes(input);
    std::erase_if(result.volumes, [&](const VolumeManifest& volume) {
        return std::ranges::none_of(result.trainer.mounts, [&](const MountManifest& mount) {
            return mount.volume == volume.name;
        });
    });
    result.tolerations = {json_object({{"operator", "Exists"}})};
    result.termination_grace_period_seconds = input.settings.grace_period_seconds;
    return result;
}

PodManifest build_foreign_pod(const JobInput& input) {
    PodManifest result;
    result.labels[std::string{kJobLabel}] = input.job.meta.name;
    result.init_containers = build_init_containers(input);
    result.trainer = build_trainer(input);
    result.volumes = build_volumes(input);
    return result;
}

PodManifest build_pod(const JobInput& input) {
    const PodOverlay& overlay = input.job.spec.pod_template;
    PodManifest result;
    static_cast<PodScheduling&>(result) = overlay;
    result.labels = overlay.labels;
    result.annotations = overlay.annotations;
    result.init_containers = build_init_containers(input);
    result.user_init_containers = overlay.init_containers;
    result.trainer = build_trainer(input);
    result.volumes = build_volumes(input);
    result.user_volumes = overlay.volumes;
    result.service_account_name = overlay.service_account_name;
    result.automount_service_account_token =
        overlay.automount_service_account_token.value_or(false);
    result.termination_grace_period_seconds =
        overlay.termination_grace_period_seconds.value_or(input.settings.grace_period_seconds);
    result.host_ipc = overlay.host_ipc;
    result.subdomain = service_name(input.job);
    return result;
}

}  // namespace stoker::control
