#include "operator/api/job_manifest.h"

#include <limits>

#include <fmt/format.h>

#include "common/base/fnv1a.h"
#include "operator/api/pod.h"
#include "operator/api/shared_fields.h"

namespace stoker::control {

namespace {

constexpr std::int64_t kSidecarUser = 65532;

// Writes the one field that gives a volume its type.
struct VolumeSourceWriter {
    JsonMember operator()(const HostPathVolume& source) const {
        return {"hostPath", json_object({{"path", source.path}, {"type", "Directory"}})};
    }

    JsonMember operator()(const EmptyDirVolume& source) const {
        return {
            "emptyDir",
            json_object(
                {{"medium", source.memory ? "Memory" : ""}, {"sizeLimit", source.size_limit}}),
            Presence::kAlways};
    }

    JsonMember operator()(const TokenVolume& source) const {
        const Json token = json_object(
            {{"audience", source.audience},
             {"expirationSeconds", source.expiration_seconds},
             {"path", "token"}});
        const Json projected = json_object({{"serviceAccountToken", token}});
        return {"projected", json_object({{"sources", std::vector{projected}}})};
    }

    JsonMember operator()(const SecretVolume& source) const {
        return {
            "secret",
            json_object({{"secretName", source.secret}, {"optional", if_true(source.optional)}})};
    }

    JsonMember operator()(const BundleVolume& source) const {
        const bool is_secret = source.bundle.kind == BundleKind::kSecret;
        const Json item = json_object({{"key", source.bundle.key}, {"path", source.bundle.key}});
        return {
            is_secret ? "secret" : "configMap",
            json_object(
                {{is_secret ? "secretName" : "name", source.bundle.name},
                 {"items", std::vector{item}},
                 {"optional", if_true(source.optional)}})};
    }

    JsonMember operator()(const ClaimVolume& source) const {
        return {
            "persistentVolumeClaim",
            json_object({{"claimName", source.claim_name}, {"readOnly", source.read_only}})};
    }

    JsonMember operator()(const CsiVolume& source) const {
        return {
            "csi",
            json_object(
                {{"driver", source.driver},
                 {"readOnly", source.read_only},
                 {"volumeAttributes", source.attributes}})};
    }
};

Json write_volume(const VolumeManifest& volume) {
    return json_object({{"name", volume.name}, std::visit(VolumeSourceWriter{}, volume.source)});
}

Json write_mount(const MountManifest& mount) {
    return json_object(
        {{"name", mount.volume}, {"mountPath", mount.path}, {"readOnly", mount.read_only}});
}

Json restricted_context() {
    return json_object(
        {{"allowPrivilegeEscalation", false},
         {"capabilities", json_object({{"drop", std::vector<Json>{"ALL"}}})},
         {"privileged", false},
         {"readOnlyRootFilesystem", true},
         {"runAsNonRoot", true},
         {"runAsUser", kSidecarUser},
         {"runAsGroup", kSidecarUser},
         {"seccompProfile", json_object({{"type", "RuntimeDefault"}})}});
}

Json write_probe(const StartupProbe& probe) {
    const bool get = probe.command.empty();
    return json_object(
        {{"httpGet", get ? json_object({{"path", probe.path}, {"port", probe.port}}) : Json()},
         {"exec", json_object({{"command", probe.command}})},
         {"periodSeconds", probe.period_seconds},
         {"failureThreshold", probe.failures_max}});
}

Json write_ports(const ContainerManifest& container) {
    std::vector<Json> ports;
    const auto add = [&](std::string_view name, const std::optional<std::int32_t>& port) {
        if (port) {
            ports.push_back(
                json_object({{"name", name}, {"containerPort", *port}, {"protocol", "TCP"}}));
        }
    };
    add("stoker-http", container.http_port);
    add("stoker-peer", container.peer_port);
    return ports;
}

Json write_container(const ContainerManifest& container) {
    const Json ours = json_object(
        {{"name", container.name},
         {"restartPolicy", container.always_running ? "Always" : ""},
         // A container's last log lines outlive its pod, so the status can quote them.
         {"terminationMessagePolicy", "FallbackToLogsOnError"},
         {"volumeMounts", merged(json_list(container.mounts, write_mount), container.user_mounts)},
         {"ports", write_ports(container)},
         {"securityContext", container.restricted ? restricted_context() : Json()},
         {"startupProbe",
          container.startup_probe ? write_probe(*container.startup_probe) : Json()}});
    return merged(
        merged(ours, FieldWriter::write_fields<ContainerProgram>(container)),
        FieldWriter::write_fields<ContainerSettings>(container));
}

Json write_node_terms(const std::string& node) {
    const Json field = json_object(
        {{"key", "metadata.name"}, {"operator", "In"}, {"values", std::vector<Json>{node}}});
    return json_object({{"matchFields", std::vector{field}}});
}

Json write_preference(const PreferredNode& preferred) {
    return json_object(
        {{"weight", preferred.weight}, {"preference", write_node_terms(preferred.node)}});
}

Json write_affinity(const PodManifest& pod) {
    std::vector<Json> required;
    if (!pod.required_node.empty()) {
        required.push_back(write_node_terms(pod.required_node));
    }
    const Json node_affinity = json_object(
        {{"requiredDuringSchedulingIgnoredDuringExecution",
          json_object({{"nodeSelectorTerms", required}})},
         {"preferredDuringSchedulingIgnoredDuringExecution",
          json_list(pod.preferred_nodes, write_preference)}});
    return json_object({{"nodeAffinity", node_affinity}});
}

Json write_pod_spec(const PodManifest& pod, bool restarts) {
    const Json ours = json_object(
        {{"initContainers",
          merged(json_list(pod.init_containers, write_container), pod.user_init_containers)},
         {"containers", std::vector{write_container(pod.trainer)}},
         {"volumes", merged(json_list(pod.volumes, write_volume), pod.user_volumes)},
         {"restartPolicy", restarts ? "OnFailure" : "Never"},
         {"serviceAccountName", pod.service_account_name},
         {"automountServiceAccountToken", pod.automount_service_account_token},
         {"enableServiceLinks", false},
         {"terminationGracePeriodSeconds", pod.termination_grace_period_seconds},
         {"subdomain", pod.subdomain},
         {"hostIPC", if_true(pod.host_ipc)},
         {"affinity", write_affinity(pod)}});
    return merged(ours, FieldWriter::write_fields<PodScheduling>(pod));
}

// `on_disruption`: the action for a lost or drained pod. The Job fails if the container's exit code is
// `In` or `NotIn` `codes`.
Json failure_rules(
    std::string_view on_disruption,
    std::string_view container,
    std::string_view in_or_not,
    std::vector<Json> codes) {
    const Json condition = json_object({{"type", "DisruptionTarget"}, {"status", "True"}});
    const Json exit_codes = json_object(
        {{"containerName", container}, {"operator", in_or_not}, {"values", std::move(codes)}});
    const Json disrupted =
        json_object({{"action", on_disruption}, {"onPodConditions", std::vector{condition}}});
    const Json failed = json_object({{"action", "FailJob"}, {"onExitCodes", exit_codes}});
    return json_object({{"rules", std::vector{disrupted, failed}}});
}

Json write_failure_policy(const JobManifest& job) {
    if (job.retries) {  // a new pod continues the failed one's work, unless it cannot succeed
        return failure_rules("Ignore", job.pod.trainer.name, "In", {2, 3});
    }
    // A lost or drained pod ends the attempt, and so does a failed trainer; the exit codes of the
    // sidecar and of the S3 endpoint never do.
    return job.restarts ? Json() : failure_rules("FailJob", kTrainerContainer, "NotIn", {0});
}

Json write_job_spec(const JobManifest& job) {
    const std::int32_t failures_max =
        job.restarts ? std::numeric_limits<std::int32_t>::max() : job.retries.value_or(0);
    return json_object(
        {{"completionMode", job.restarts || job.retries ? "NonIndexed" : "Indexed"},
         {"completions", job.node_count},
         {"parallelism", job.node_count},
         {"backoffLimit", failures_max},
         {"podReplacementPolicy", "Failed"},
         {"template", pod_template(job)},
         {"podFailurePolicy", write_failure_policy(job)},
         {"ttlSecondsAfterFinished", job.ttl_seconds_after_finished},
         {"activeDeadlineSeconds", job.active_deadline_seconds}});
}

}  // namespace

Json to_json(const JobManifest& job) {
    return json_object(
        {{"apiVersion", "batch/v1"},
         {"kind", "Job"},
         {"metadata", FieldWriter::write_fields(job.meta)},
         {"spec", write_job_spec(job)}});
}

Json pod_template(const JobManifest& job) {
    const Json meta =
        json_object({{"labels", job.pod.labels}, {"annotations", job.pod.annotations}});
    return json_object({{"metadata", meta}, {"spec", write_pod_spec(job.pod, job.restarts)}});
}

Json to_json(const ServiceManifest& service) {
    const Json spec = json_object(
        {{"clusterIP", "None"},
         {"publishNotReadyAddresses", true},
         {"selector", service.selector}});
    return json_object(
        {{"apiVersion", "v1"},
         {"kind", "Service"},
         {"metadata", FieldWriter::write_fields(service.meta)},
         {"spec", spec}});
}

Json deadline_patch(std::int64_t seconds) {
    return json_object({{"spec", json_object({{"activeDeadlineSeconds", seconds}})}});
}

Json annotation_patch(const std::string& key, const std::string& text) {
    const JsonMember annotation{key, text.empty() ? Json() : Json(text), Presence::kAlways};
    return json_object({{"metadata", json_object({{"annotations", json_object({annotation})}})}});
}

std::string digest(const JobManifest& job) {
    return fmt::format("{:016x}", fnv1a(to_json(job).text()));
}

std::string literal(const std::string& text) {
    std::string result;
    for (const char c : text) {
        result += c;
        if (c == '$') {
            result += c;
        }
    }
    return result;
}

Json from_field(std::string_view field_path) {
    return json_object({{"fieldRef", json_object({{"fieldPath", field_path}})}});
}

Json from_secret(std::string_view secret, std::string_view key, bool optional) {
    const Json reference =
        json_object({{"name", secret}, {"key", key}, {"optional", if_true(optional)}});
    return json_object({{"secretKeyRef", reference}});
}

}  // namespace stoker::control
