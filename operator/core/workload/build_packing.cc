#include "operator/core/workload/build_packing.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include <fmt/format.h>

#include "operator/api/pod.h"
#include "operator/core/workload/build_filler.h"

namespace stoker::control {

namespace {

constexpr std::string_view kFileScheme = "file://";
constexpr std::string_view kResultFile = "/dev/termination-log";

// One end of the copy. Its folders and volumes are named after it.
struct End {
    std::string_view name;   // "from", "to"
    std::string_view flags;  // prefix of its flags
    const DatasetSource& source;

    [[nodiscard]] std::string path(std::string_view what) const {
        return fmt::format("/stoker/{}/{}", name, what);
    }

    // Name of the claim; empty: the end is no claim.
    [[nodiscard]] std::string claim() const {
        return source.volume ? source.volume->claim_name.value_or("") : "";
    }

    // The whole claim is mounted, so the URI's path is appended to the mount point.
    [[nodiscard]] std::string uri() const {
        return source.volume ? fmt::format(
                                   "{}{}{}",
                                   kFileScheme,
                                   path("volume"),
                                   source.storage_uri.substr(kFileScheme.size()))
                             : source.storage_uri;
    }
};

// Every flag is set, because those of the source default to those of the destination.
void add_flags(const End& end, std::vector<std::string>& args) {
    const DatasetSource& source = end.source;
    const auto add = [&](std::string_view flag, const std::string& value) {
        args.push_back(literal(fmt::format("--{}{}={}", end.flags, flag, value)));
    };
    if (source.volume) {
        return;
    }
    add("endpoint", source.endpoint);
    add("region", source.region.empty() ? "us-east-1" : source.region);
    add("credentials", source.secret_ref ? end.path("credentials") : "");
    add("ca-file", source.ca_bundle ? end.path("ca") + "/" + source.ca_bundle->key : "");
    if (source.path_style) {
        add("path-style", *source.path_style ? "true" : "false");
    }
}

void add_volume(const End& end, std::string_view what, VolumeManifest volume, PodManifest& pod) {
    volume.name = fmt::format("stoker-{}-{}", end.name, what);
    pod.trainer.mounts.push_back({volume.name, end.path(what), true});
    pod.volumes.push_back(std::move(volume));
}

// A pod does not start if two of its volumes have the same claim, so two ends in one claim share a
// volume.
void add_claims(const End& from, const End& to, PodManifest& pod) {
    if (!from.claim().empty() && from.claim() != to.claim()) {
        add_volume(from, "volume", {"", ClaimVolume{from.claim(), true}}, pod);
    }
    if (to.claim().empty()) {
        return;
    }
    const std::string name = "stoker-to-volume";
    pod.volumes.push_back({name, ClaimVolume{to.claim(), false}});
    pod.trainer.mounts.push_back({name, to.path("volume"), false});
    if (from.claim() == to.claim()) {
        pod.trainer.mounts.push_back({name, from.path("volume"), true});
    }
}

void add_keys(const End& end, PodManifest& pod) {
    const DatasetSource& source = end.source;
    if (source.secret_ref) {
        add_volume(end, "credentials", {"", SecretVolume{*source.secret_ref}}, pod);
    }
    if (source.ca_bundle) {
        add_volume(end, "ca", {"", BundleVolume{*source.ca_bundle}}, pod);
    }
}

// Each thread holds one chunk in memory, and a second copy while it writes it.
std::uint64_t threads_for(Bytes chunk_bytes) {
    constexpr std::uint64_t kThreadsMax = 4;
    return std::clamp<std::uint64_t>(mib(256).count() / chunk_bytes.count(), 1, kThreadsMax);
}

std::vector<std::string> arguments(const DatasetPacking& packing, const End& from, const End& to) {
    std::vector<std::string> args = {
        "pack",
        literal(from.uri()),
        literal(to.uri()),
        fmt::format("--order={}", packing.order == PackingOrder::kRandom ? "random" : "listed"),
        fmt::format("--seed={}", packing.seed),
        fmt::format("--chunk-bytes={}", packing.chunk_bytes.count()),
        fmt::format("--threads={}", threads_for(packing.chunk_bytes)),
        fmt::format("--result-file={}", kResultFile)};
    add_flags(to, args);
    add_flags(from, args);
    return args;
}

PodManifest build_pod(const Dataset& dataset, const JobSettings& settings) {
    const DatasetPacking& packing = *dataset.spec.packing;
    const End from{"from", "from-", packing.from};
    const End to{"to", "", dataset.spec.sources.front()};
    PodManifest pod;
    pod.trainer.name = kPackContainer;
    pod.trainer.image = settings.sidecar_image;
    pod.trainer.image_pull_policy = settings.sidecar_image_pull_policy;
    pod.trainer.command = {"stoker"};
    pod.trainer.args = arguments(packing, from, to);
    for (const auto& [name, value] : settings.sidecar_proxy) {
        pod.trainer.env.push_back({name, literal(value), {}});
    }
    pod.trainer.resources = settings.packing_resources;
    pod.trainer.restricted = true;
    add_claims(from, to, pod);
    add_keys(from, pod);
    add_keys(to, pod);
    pod.termination_grace_period_seconds = settings.grace_period_seconds;
    return pod;
}

// The Job without its name, which packing_job_name() derives from it.
JobManifest build_unnamed(const Dataset& dataset, const JobSettings& settings) {
    JobManifest result;
    result.meta.ns = dataset.meta.ns;
    result.meta.owners = {owner_of(dataset)};
    result.meta.labels = {
        {"app.kubernetes.io/managed-by", "stoker"},
        {"app.kubernetes.io/name", "pack"},
        {std::string{kPackingLabel}, dataset.meta.uid}};
    result.meta.annotations = {{std::string{kFillerDatasetAnnotation}, dataset.meta.name}};
    result.retries = kPackingRetries;
    result.active_deadline_seconds = dataset.spec.packing->active_deadline_seconds;
    result.pod = build_pod(dataset, settings);
    result.pod.labels = result.meta.labels;
    result.pod.annotations = result.meta.annotations;
    return result;
}

}  // namespace

std::string packing_job_name(const Dataset& dataset) {
    return child_name(dataset, "pack", digest(build_unnamed(dataset, JobSettings{})));
}

JobManifest build_packing(const Dataset& dataset, const JobSettings& settings) {
    JobManifest result = build_unnamed(dataset, settings);
    result.meta.name = packing_job_name(dataset);
    return result;
}

}  // namespace stoker::control
