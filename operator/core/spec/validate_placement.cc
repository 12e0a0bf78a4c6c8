#include "operator/core/spec/validate_placement.h"

#include <cstdint>
#include <string>

#include <fmt/format.h>

namespace stoker::control {

namespace {

// Nodes compute the reads of all epochs.
constexpr std::int64_t kForeseenEpochsMax = 1'000;
// JSON numbers are exact up to it.
constexpr std::int64_t kSeedMax = (1LL << 53) - 1;

void check_foreseen(
    const TrainingJobSpec& spec, const JobDataset& dataset, Complaints& complaints) {
    const std::string path = fmt::format("spec.datasets[{}].placement", dataset.name);
    complaints.unless(
        dataset.access == DatasetAccess::kSdk && dataset.contract == Contract::kExact &&
            dataset.sampling == Sampling::kEpochShuffle,
        path,
        "placement Clairvoyant needs access SDK, contract Exact and sampling EpochShuffle; "
        "otherwise it is not known which samples a rank will read");
    complaints.unless(
        spec.trainer.epochs >= 1 && spec.trainer.epochs <= kForeseenEpochsMax,
        path,
        "placement Clairvoyant needs trainer.epochs, at most 1000: more epochs gain nothing");
    complaints.unless(
        !spec.workload_ref,
        path,
        "placement Clairvoyant needs pods that Stoker starts; with workloadRef choose Hash");
}

}  // namespace

void check_placements(const TrainingJobSpec& spec, Complaints& complaints) {
    for (const JobDataset& dataset : spec.datasets) {
        const bool is_clairvoyant = dataset.placement == SamplePlacement::kClairvoyant;
        const std::string member = fmt::format("spec.datasets[{}].clairvoyant", dataset.name);
        complaints.unless(
            is_clairvoyant || !dataset.clairvoyant,
            member,
            "clairvoyant belongs to placement Clairvoyant; leave it out or choose that placement");
        const std::int64_t seed = dataset.clairvoyant.value_or(ClairvoyantSpec{}).seed;
        complaints.unless(
            seed >= 0 && seed <= kSeedMax,
            member + ".seed",
            "seed must be from 0 to 9007199254740991");
        if (is_clairvoyant) {
            check_foreseen(spec, dataset, complaints);
        }
    }
}

}  // namespace stoker::control
