#include "operator/core/workload/build_filler.h"

#include <cctype>

#include <fmt/format.h>

#include "common/base/fnv1a.h"
#include "common/base/saturating.h"
#include "operator/api/time_format.h"
#include "operator/core/workload/build_pod.h"

namespace stoker::control {

namespace {

constexpr std::string_view kPrefix = "filler/";
// Limit of a Job's name: its pods carry it in a label.
constexpr std::size_t kNameBytesMax = 63;
constexpr std::size_t kDigits = 12;  // of a hash in a name

// FNV-1a hash, upper 48 bits.
std::string digits_of(std::string_view text) {
    return fmt::format("{:0{}x}", fnv1a(text) >> 16U, kDigits);
}

// A prefix that ends with a letter or a digit, as DNS labels must.
std::string shorten(const std::string& name, std::size_t bytes_max) {
    std::string result = name.substr(0, bytes_max);
    while (!result.empty() && std::isalnum(static_cast<unsigned char>(result.back())) == 0) {
        result.pop_back();
    }
    return result;
}

// The name, or a prefix of it and a hash of it.
std::string shorten_uniquely(const std::string& name, std::size_t bytes_max) {
    const std::string digits = digits_of(name);
    return name.size() <= bytes_max
               ? name
               : fmt::format("{}-{}", shorten(name, bytes_max - digits.size() - 1), digits);
}

// Shortens one of two names that share a name of at most 253 characters.
std::string part_of_name(const std::string& name) {
    constexpr std::size_t kBytesMax = 122;
    return shorten_uniquely(name, kBytesMax);
}

TextMap labels_of(const Dataset& dataset) {
    return {
        {"app.kubernetes.io/managed-by", "stoker"},
        {"app.kubernetes.io/name", "filler"},
        {std::string{kFillerLabel}, dataset.meta.uid}};
}

JobManifest build_without_digest(const FillerInput& input) {
    const Dataset& dataset = input.dataset;
    TrainingJob job;  // named as the sidecar reports it
    job.meta.ns = dataset.meta.ns;
    job.meta.name = filler_training_job(dataset, input.pool.name);
    job.meta.uid = dataset.meta.uid;
    const std::vector<ResolvedDataset> datasets = {resolve_for_filler(dataset)};
    const JobInput sidecar{
        job, datasets, input.pool, input.settings, 1, {}, {}, kFillerIdleSeconds};
    JobManifest result;
    result.meta.ns = dataset.meta.ns;
    result.meta.name = filler_name(dataset, {input.pool.name, input.node});
    result.meta.owners = {owner_of(dataset)};
    result.meta.labels = labels_of(dataset);
    result.meta.annotations = {
        {std::string{kFillerDatasetAnnotation}, dataset.meta.name},
        {std::string{kFillerPoolAnnotation}, input.pool.name},
        {std::string{kFillerNodeAnnotation}, input.node}};
    result.restarts = true;
    result.active_deadline_seconds = kFillerLeaseSeconds;
    result.ttl_seconds_after_finished = kFillerTtlSeconds;
    result.pod = build_filler_pod(sidecar);
    result.pod.labels = result.meta.labels;
    result.pod.annotations = result.meta.annotations;
    result.pod.required_node = input.node;
    return result;
}

}  // namespace

FillerPlace place_of(const ObjectMeta& filler) {
    return {
        value_or_empty(filler.annotations, std::string{kFillerPoolAnnotation}),
        value_or_empty(filler.annotations, std::string{kFillerNodeAnnotation})};
}

OwnerReference owner_of(const Dataset& dataset) {
    return {"stoker.dev/v1alpha1", "Dataset", dataset.meta.name, dataset.meta.uid, true, false};
}

std::string child_name(const Dataset& dataset, std::string_view kind, const std::string& text) {
    const std::string rest = fmt::format("-{}-{}", kind, digits_of(text));
    return shorten(dataset.meta.name, kNameBytesMax - rest.size()) + rest;
}

std::string filler_name(const Dataset& dataset, const FillerPlace& place) {
    return child_name(
        dataset, "filler", fmt::format("{}\n{}\n{}", dataset.meta.uid, place.pool, place.node));
}

std::string filler_training_job(const Dataset& dataset, const std::string& pool) {
    return fmt::format("{}{}/{}", kPrefix, part_of_name(dataset.meta.name), part_of_name(pool));
}

bool is_filler(std::string_view training_job) {
    return training_job.starts_with(kPrefix);
}

bool is_filler_of(std::string_view training_job, const std::string& dataset) {
    return training_job.starts_with(fmt::format("{}{}/", kPrefix, part_of_name(dataset)));
}

bool may_be_shortened(std::string_view dataset_part) {
    const std::size_t dash = dataset_part.find_last_not_of("0123456789abcdef");
    return dash != std::string_view::npos && dataset_part[dash] == '-' &&
           dataset_part.size() - dash - 1 == kDigits;
}

ResolvedDataset resolve_for_filler(const Dataset& dataset) {
    constexpr std::size_t kOfDatasetsInJobs = 63;  // length of the socket folder's name
    ResolvedDataset result = resolve_dataset(dataset);
    result.name = shorten_uniquely(dataset.meta.name, kOfDatasetsInJobs);
    result.listing_age_seconds_max.reset();  // each new filler lists anew, in every mode
    return result;
}

std::string filler_digest(const FillerInput& input) {
    JobSettings lasting = input.settings;
    lasting.control_ca_pem.clear();
    return digest(build_without_digest({input.dataset, input.pool, lasting, ""}));
}

JobManifest build_filler(const FillerInput& input) {
    JobManifest result = build_without_digest(input);
    result.meta.annotations[std::string{kDigestAnnotation}] = filler_digest(input);
    if (input.run) {
        for (TextMap* annotations : {&result.meta.annotations, &result.pod.annotations}) {
            (*annotations)[std::string{kFillerRunAnnotation}] = format_time(*input.run);
        }
    }
    return result;
}

}  // namespace stoker::control
