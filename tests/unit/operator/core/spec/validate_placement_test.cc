#include "operator/core/spec/validate_placement.h"

#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "operator/core/spec/validate.h"
#include "tests/unit/operator/core/make_training_job.h"

namespace stoker::control {
namespace {

TrainingJob make_clairvoyant() {
    TrainingJob job = make_training_job();
    job.spec.trainer.epochs = 3;
    job.spec.datasets[0].placement = SamplePlacement::kClairvoyant;
    return job;
}

// The errors of a job with placement Clairvoyant that `spoil` has changed.
std::string errors_after(const std::function<void(TrainingJobSpec&)>& spoil) {
    TrainingJob job = make_clairvoyant();
    spoil(job.spec);
    return to_string(validate(job));
}

TEST(ValidatePlacement, AcceptsClairvoyantWithKnownEpochs) {
    EXPECT_EQ(errors_after([](TrainingJobSpec&) {}), "");
    EXPECT_EQ(
        errors_after([](TrainingJobSpec& spec) {
            spec.trainer.epochs = 1'000;
            spec.trainer.processes_per_node = "gpu";
            spec.datasets[0].clairvoyant = {ReadOrder::kStoker, 7, true};
        }),
        "");
}

TEST(ValidatePlacement, ClairvoyantNeedsBetween1And1000Epochs) {
    const std::string error =
        "spec.datasets[train].placement: placement Clairvoyant needs trainer.epochs, at most 1000: "
        "more epochs gain nothing";
    EXPECT_EQ(errors_after([](TrainingJobSpec& spec) { spec.trainer.epochs = 0; }), error);
    EXPECT_EQ(errors_after([](TrainingJobSpec& spec) { spec.trainer.epochs = 1'001; }), error);
}

TEST(ValidatePlacement, ClairvoyantNeedsReadsThatTheSamplerAloneDecides) {
    const std::string error =
        "spec.datasets[train].placement: placement Clairvoyant needs access SDK, contract Exact "
        "and sampling EpochShuffle; otherwise it is not known which samples a rank will read";
    const std::vector<std::function<void(JobDataset&)>> spoils = {
        [](JobDataset& dataset) { dataset.access = DatasetAccess::kS3; },
        [](JobDataset& dataset) { dataset.contract = Contract::kWindowed; },
        [](JobDataset& dataset) { dataset.sampling = Sampling::kSequential; }};
    for (const auto& spoil : spoils) {
        EXPECT_EQ(errors_after([&](TrainingJobSpec& spec) { spoil(spec.datasets[0]); }), error);
    }
}

TEST(ValidatePlacement, ClairvoyantNeedsPodsOfOurOwn) {
    EXPECT_EQ(
        errors_after([](TrainingJobSpec& spec) { spec.workload_ref.emplace(); }),
        "spec.datasets[train].placement: placement Clairvoyant needs pods that Stoker starts; with "
        "workloadRef choose Hash");
}

TEST(ValidatePlacement, TheShuffleBelongsToClairvoyant) {
    TrainingJob job = make_training_job();
    job.spec.datasets[0].clairvoyant.emplace();
    EXPECT_EQ(
        to_string(validate(job)),
        "spec.datasets[train].clairvoyant: clairvoyant belongs to placement Clairvoyant; leave it "
        "out or choose that placement");
}

TEST(ValidatePlacement, ASeedIsExactInJson) {
    EXPECT_EQ(
        errors_after(
            [](TrainingJobSpec& spec) { spec.datasets[0].clairvoyant.emplace().seed = -1; }),
        "spec.datasets[train].clairvoyant.seed: seed must be from 0 to 9007199254740991");
    EXPECT_EQ(
        errors_after(
            [](TrainingJobSpec& spec) { spec.datasets[0].clairvoyant.emplace().seed = 1LL << 53; }),
        "spec.datasets[train].clairvoyant.seed: seed must be from 0 to 9007199254740991");
}

}  // namespace
}  // namespace stoker::control
