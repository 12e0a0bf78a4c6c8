#include "operator/api/job_manifest.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "operator/api/json_writer.h"
#include "operator/api/pod.h"

namespace stoker::control {

namespace {

constexpr std::int64_t kSidecarUser = 65532;

// Writes the one field of a volume that says what it is.
struct VolumeSourceWriter {
    JsonWriter& volume;

    void operator()(const HostPathVolume& source) const {
        JsonWriter writer;
        writer.text("path", source.path).text("type", "Directory");
        volume.object("hostPath", writer);
    }

    void operator()(const EmptyDirVolume& source) const {
        JsonWriter writer;
        writer.text("medium", source.memory ? "Memory" : "").text("sizeLimit", source.size_limit);
        volume.required_object("emptyDir", writer);
    }

    void operator()(const TokenVolume& source) const {
        JsonWriter token;
        token.text("audience", source.audience)
            .number("expirationSeconds", source.expiration_seconds)
            .text("path", "token");
        JsonWriter item;
        item.object("serviceAccountToken", token);
        JsonWriter projected;
        projected.append("sources", item);
        volume.object("projected", projected);
    }

    void operator()(const SecretVolume& source) const {
        JsonWriter writer;
        writer.text("secretName", source.secret);
        if (source.optional) {
            writer.flag("optional", true);
        }
        volume.object("secret", writer);
    }

    void operator()(const BundleVolume& source) const {
        const bool is_secret = source.bundle.kind == BundleKind::kSecret;
        JsonWriter item;
        item.text("key", source.bundle.key).text("path", source.bundle.key);
        JsonWriter writer;
        writer.text(is_secret ? "secretName" : "name", source.bundle.name).append("items", item);
        if (source.optional) {
            writer.flag("optional", true);
        }
        volume.object(is_secret ? "secret" : "configMap", writer);
    }

    void operator()(const ClaimVolume& source) const {
        JsonWriter writer;
        writer.text("claimName", source.claim_name).flag("readOnly", source.read_only);
        volume.object("persistentVolumeClaim", writer);
    }

    void operator()(const CsiVolume& source) const {
        JsonWriter writer;
        writer.text("driver", source.driver)
            .flag("readOnly", source.read_only)
            .text_map("volumeAttributes", source.attributes);
        volume.object("csi", writer);
    }
};

JsonWriter write_volume(const VolumeManifest& volume) {
    JsonWriter writer;
    writer.text("name", volume.name);
    std::visit(VolumeSourceWriter{writer}, volume.source);
    return writer;
}

JsonWriter write_mount(const MountManifest& mount) {
    JsonWriter writer;
    writer.text("name", mount.volume)
        .text("mountPath", mount.path)
        .flag("readOnly", mount.read_only);
    return writer;
}

JsonWriter write_env(const EnvVar& variable) {
    JsonWriter writer;
    writer.text("name", variable.name)
        .text("value", variable.value)
        .raw("valueFrom", variable.value_from);
    return writer;
}

JsonWriter restricted_context() {
    JsonWriter capabilities;
    capabilities.append_text("drop", "ALL");
    JsonWriter seccomp;
    seccomp.text("type", "RuntimeDefault");
    JsonWriter writer;
    writer.flag("allowPrivilegeEscalation", false)
        .object("capabilities", capabilities)
        .flag("privileged", false)
        .flag("readOnlyRootFilesystem", true)
        .flag("runAsNonRoot", true)
        .number("runAsUser", kSidecarUser)
        .number("runAsGroup", kSidecarUser)
        .object("seccompProfile", seccomp);
    return writer;
}

JsonWriter write_probe(const StartupProbe& probe) {
    JsonWriter get;
    get.text("path", probe.path).number("port", probe.port);
    JsonWriter writer;
    writer.object("httpGet", get)
        .number("periodSeconds", probe.period_seconds)
        .number("failureThreshold", probe.failures_max);
    return writer;
}

JsonWriter write_http_port(std::int32_t port) {
    JsonWriter writer;
    writer.text("name", "stoker-http").number("containerPort", port).text("protocol", "TCP");
    return writer;
}

JsonWriter write_resources(const Resources& resources) {
    JsonWriter writer;
    writer.text_map("limits", resources.limits).text_map("requests", resources.requests);
    return writer;
}

JsonWriter write_container(const ContainerManifest& container) {
    JsonWriter writer;
    writer.text("name", container.name)
        .text("image", container.image)
        .text("imagePullPolicy", container.image_pull_policy)
        .text("restartPolicy", container.always_running ? "Always" : "")
        .texts("command", container.command)
        .texts("args", container.args)
        .text("workingDir", container.working_dir)
        .list("env", container.env, write_env)
        .object("resources", write_resources(container.resources))
        // What a container said last outlives its pod: the status quotes it.
        .text("terminationMessagePolicy", "FallbackToLogsOnError")
        .list("volumeMounts", container.mounts, write_mount);
    for (const RawJson& item : container.env_from) {
        writer.append_raw("envFrom", item);
    }
    for (const RawJson& item : container.user_mounts) {
        writer.append_raw("volumeMounts", item);
    }
    for (const RawJson& item : container.ports) {
        writer.append_raw("ports", item);
    }
    if (container.http_port) {
        writer.append("ports", write_http_port(*container.http_port));
    }
    if (container.restricted) {
        writer.object("securityContext", restricted_context());
    } else {
        writer.raw("securityContext", container.security_context);
    }
    if (container.startup_probe) {
        writer.object("startupProbe", write_probe(*container.startup_probe));
    }
    return writer;
}

JsonWriter write_preference(const PreferredNode& preferred) {
    JsonWriter field;
    field.text("key", "metadata.name").text("operator", "In").append_text("values", preferred.node);
    JsonWriter term;
    term.append("matchFields", field);
    JsonWriter writer;
    writer.number("weight", preferred.weight).object("preference", term);
    return writer;
}

JsonWriter write_requirement(const std::string& node) {
    JsonWriter field;
    field.text("key", "metadata.name").text("operator", "In").append_text("values", node);
    JsonWriter term;
    term.append("matchFields", field);
    JsonWriter writer;
    writer.append("nodeSelectorTerms", term);
    return writer;
}

JsonWriter write_affinity(const PodManifest& pod) {
    JsonWriter node_affinity;
    if (!pod.required_node.empty()) {
        node_affinity.object(
            "requiredDuringSchedulingIgnoredDuringExecution", write_requirement(pod.required_node));
    }
    node_affinity.list(
        "preferredDuringSchedulingIgnoredDuringExecution", pod.preferred_nodes, write_preference);
    JsonWriter writer;
    writer.object("nodeAffinity", node_affinity).overlay(pod.affinity);
    return writer;
}

JsonWriter write_pod_security_context(const PodManifest& pod) {
    JsonWriter writer;
    writer.overlay(pod.security_context);
    return writer;
}

void write_scheduling(const PodManifest& pod, JsonWriter& writer) {
    writer.text_map("nodeSelector", pod.node_selector)
        .object("affinity", write_affinity(pod))
        .text("priorityClassName", pod.priority_class_name)
        .text("schedulerName", pod.scheduler_name)
        .text("runtimeClassName", pod.runtime_class_name);
    for (const RawJson& item : pod.tolerations) {
        writer.append_raw("tolerations", item);
    }
    for (const RawJson& item : pod.topology_spread_constraints) {
        writer.append_raw("topologySpreadConstraints", item);
    }
    for (const std::string& secret : pod.image_pull_secrets) {
        JsonWriter item;
        item.text("name", secret);
        writer.append("imagePullSecrets", item);
    }
}

JsonWriter write_pod_spec(const PodManifest& pod, bool restarts) {
    JsonWriter writer;
    writer.list("initContainers", pod.init_containers, write_container)
        .append("containers", write_container(pod.trainer))
        .list("volumes", pod.volumes, write_volume)
        .text("restartPolicy", restarts ? "OnFailure" : "Never")
        .text("serviceAccountName", pod.service_account_name)
        .flag("automountServiceAccountToken", pod.automount_service_account_token)
        .flag("enableServiceLinks", false)
        .object("securityContext", write_pod_security_context(pod))
        .number("terminationGracePeriodSeconds", pod.termination_grace_period_seconds)
        .text("subdomain", pod.subdomain);
    for (const RawJson& container : pod.user_init_containers) {
        writer.append_raw("initContainers", container);
    }
    for (const RawJson& volume : pod.user_volumes) {
        writer.append_raw("volumes", volume);
    }
    if (pod.host_ipc) {
        writer.flag("hostIPC", true);
    }
    write_scheduling(pod, writer);
    return writer;
}

// A lost or drained pod ends the attempt, and so does a trainer that fails; the sidecar's exit code
// never does.
JsonWriter write_pod_failure_policy() {
    JsonWriter condition;
    condition.text("type", "DisruptionTarget").text("status", "True");
    JsonWriter disrupted;
    disrupted.text("action", "FailJob").append("onPodConditions", condition);
    JsonWriter codes;
    codes.text("containerName", std::string{kTrainerContainer})
        .text("operator", "NotIn")
        .append_number("values", 0);
    JsonWriter failed;
    failed.text("action", "FailJob").object("onExitCodes", codes);
    JsonWriter writer;
    writer.append("rules", disrupted).append("rules", failed);
    return writer;
}

JsonWriter write_pod_template(const JobManifest& job) {
    JsonWriter pod_meta;
    pod_meta.text_map("labels", job.pod.labels).text_map("annotations", job.pod.annotations);
    JsonWriter writer;
    writer.object("metadata", pod_meta).object("spec", write_pod_spec(job.pod, job.restarts));
    return writer;
}

JsonWriter write_job_spec(const JobManifest& job) {
    JsonWriter writer;
    writer.text("completionMode", job.restarts ? "NonIndexed" : "Indexed")
        .number("completions", job.node_count)
        .number("parallelism", job.node_count)
        .number("backoffLimit", job.restarts ? std::numeric_limits<std::int32_t>::max() : 0)
        .text("podReplacementPolicy", "Failed")
        .object("template", write_pod_template(job));
    if (!job.restarts) {
        writer.object("podFailurePolicy", write_pod_failure_policy());
    }
    if (job.ttl_seconds_after_finished) {
        writer.number("ttlSecondsAfterFinished", *job.ttl_seconds_after_finished);
    }
    if (job.active_deadline_seconds) {
        writer.number("activeDeadlineSeconds", *job.active_deadline_seconds);
    }
    return writer;
}

}  // namespace

void add_placement(const PodPlacement& placement, PodManifest& pod) {
    pod.labels.insert(placement.labels.begin(), placement.labels.end());
    pod.annotations.insert(placement.annotations.begin(), placement.annotations.end());
    pod.node_selector.insert(placement.node_selector.begin(), placement.node_selector.end());
    for (const RawJson& toleration : placement.tolerations) {
        if (std::ranges::find(pod.tolerations, toleration) == pod.tolerations.end()) {
            pod.tolerations.push_back(toleration);
        }
    }
}

std::string to_json(const JobManifest& job) {
    JsonWriter writer;
    writer.text("apiVersion", "batch/v1")
        .text("kind", "Job")
        .object("metadata", write_meta(job.meta))
        .object("spec", write_job_spec(job));
    return writer.serialize();
}

RawJson pod_template(const JobManifest& job) {
    return RawJson{write_pod_template(job).serialize()};
}

std::string to_json(const ServiceManifest& service) {
    JsonWriter spec;
    spec.text("clusterIP", "None")
        .flag("publishNotReadyAddresses", true)
        .text_map("selector", service.selector);
    JsonWriter writer;
    writer.text("apiVersion", "v1")
        .text("kind", "Service")
        .object("metadata", write_meta(service.meta))
        .object("spec", spec);
    return writer.serialize();
}

std::string deadline_patch(std::int64_t seconds) {
    JsonWriter spec;
    spec.number("activeDeadlineSeconds", seconds);
    JsonWriter writer;
    writer.object("spec", spec);
    return writer.serialize();
}

std::string annotation_patch(const std::string& key, const std::string& text) {
    JsonWriter annotations;
    if (text.empty()) {
        annotations.raw(key, RawJson{"null"});
    } else {
        annotations.text(key, text);
    }
    JsonWriter meta;
    meta.object("annotations", annotations);
    JsonWriter writer;
    writer.object("metadata", meta);
    return writer.serialize();
}

std::string digest(const JobManifest& job) {
    std::uint64_t hash = 0xCBF29CE484222325ULL;
    for (const char c : to_json(job)) {
        hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3ULL;
    }
    return fmt::format("{:016x}", hash);
}

RawJson from_field(std::string_view field_path) {
    JsonWriter field;
    field.text("fieldPath", std::string{field_path});
    JsonWriter writer;
    writer.object("fieldRef", field);
    return RawJson{writer.serialize()};
}

RawJson from_secret(std::string_view secret, std::string_view key, bool optional) {
    JsonWriter reference;
    reference.text("name", std::string{secret}).text("key", std::string{key});
    if (optional) {
        reference.flag("optional", true);
    }
    JsonWriter writer;
    writer.object("secretKeyRef", reference);
    return RawJson{writer.serialize()};
}

}  // namespace stoker::control
