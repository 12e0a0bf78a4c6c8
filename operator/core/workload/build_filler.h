#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/clock.h"
#include "operator/api/dataset.h"
#include "operator/api/job.h"
#include "operator/api/job_manifest.h"
#include "operator/core/spec/resolve.h"
#include "operator/core/workload/build_job.h"

// A filler is a sidecar without a trainer, in the namespace of a Dataset. It fills the Dataset's
// directory on one node while jobs of other namespaces read it there (docs/adr/0012). Pure: equal
// inputs, equal manifests.
namespace stoker::control {

inline constexpr std::string_view kFillerLabel = "stoker.dev/filler";  // the Dataset's uid
inline constexpr std::string_view kFillerDatasetAnnotation = "stoker.dev/dataset";
inline constexpr std::string_view kFillerPoolAnnotation = "stoker.dev/pool";
inline constexpr std::string_view kFillerNodeAnnotation = "stoker.dev/node";
// RFC 3339 time of the DatasetWarmup's scheduled run of this filler. Not in filler_digest().
inline constexpr std::string_view kFillerRunAnnotation = "stoker.dev/warmup-run";

// A filler stops after it has led this long without a connection or a valid grant. So no fillers
// remain after Stoker is uninstalled, and readers keep theirs while the operator is down.
inline constexpr std::int64_t kFillerIdleSeconds = 600;

// A filler ends after this time, even if guests use it, unless the operator renews it. Equals the
// chart's node.uninstallGraceSeconds. The Job is removed kFillerTtlSeconds after its end.
inline constexpr std::int64_t kFillerLeaseSeconds = 7 * 24 * 3600;
inline constexpr std::int64_t kFillerTtlSeconds = 60;

// The directory of a pool on one node.
struct FillerPlace {
    std::string pool;
    std::string node;

    auto operator<=>(const FillerPlace&) const = default;
};

// The place named by an object's annotations; its texts are empty if they name none.
FillerPlace place_of(const ObjectMeta& filler);

// A Dataset as the owner of its Jobs. The reference does not block the Dataset's deletion, so the
// operator needs no right to finalizers.
OwnerReference owner_of(const Dataset& dataset);

// "<dataset>-<kind>-<12 hex digits>", at most 63 characters. The digits are a hash of `text`.
std::string child_name(const Dataset& dataset, std::string_view kind, const std::string& text);

// "<dataset>-filler-<12 hex digits>", at most 63 characters. The digits are a hash of the Dataset's
// uid, pool and node.
std::string filler_name(const Dataset& dataset, const FillerPlace& place);

// TrainingJob name that a filler's sidecar reports: "filler/<dataset>/<pool>", at most 253 characters;
// in a Dataset's or pool's name of more than 122 characters, a hash replaces the end. No
// TrainingJob has a '/' in its name. The reported uid is the Dataset's.
std::string filler_training_job(const Dataset& dataset, const std::string& pool);

// Whether the name is one of filler_training_job(), of any Dataset or of this one (by its name).
bool is_filler(std::string_view training_job);
bool is_filler_of(std::string_view training_job, const std::string& dataset);

// Whether the Dataset's part of such a name may end with a hash: "-" and 12 hex digits.
bool may_be_shortened(std::string_view dataset_part);

// Resolves the Dataset for its fillers.
ResolvedDataset resolve_for_filler(const Dataset& dataset);

struct FillerInput {
    const Dataset& dataset;
    const ResolvedPool& pool;  // with a name
    const JobSettings& settings;
    std::string node;
    std::optional<WallTime> run{};  // kFillerRunAnnotation
};

// Digest of a filler's spec: equal for all nodes of one Dataset and pool. Excludes the operator's
// CA, which may change while a filler runs.
std::string filler_digest(const FillerInput& input);

// The Job of a filler, with filler_digest() as its kDigestAnnotation.
JobManifest build_filler(const FillerInput& input);

}  // namespace stoker::control
