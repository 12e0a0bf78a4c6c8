#include "operator/core/status/guest_status.h"

#include <gtest/gtest.h>

#include "operator/core/status/summarize_training_job.h"
#include "tests/unit/operator/core/make_training_job.h"

namespace stoker::control {
namespace {

TrainingJobStatus status_at(const TrainingJobView& view, std::int64_t second) {
    return summarize_training_job(view, decide_lifecycle(view, moment(second)), moment(second));
}

// A job that reads a Dataset of namespace "data".
struct Reader {
    Reader() {
        view.job.spec.datasets[0].dataset_ref_namespace = "data";
        dataset.meta.ns = "data";
        dataset.spec.sources[0].secret_ref = "keys";
        dataset.spec.shared_with = LabelSelector{};
        view.datasets = resolve_datasets(view.job, {dataset}, TextMap{});
    }

    Dataset dataset = make_dataset();
    TrainingJobView view = make_running_view();
};

void expect_data_ready(const TrainingJobStatus& status, const std::string& reason) {
    const Condition* found = find_condition(status.conditions, "DataReady");
    ASSERT_NE(found, nullptr);
    EXPECT_EQ(found->status, ConditionStatus::kFalse);
    EXPECT_EQ(found->reason, reason) << found->message;
}

TEST(GuestStatus, ReportsWhichSidecarTheGuestWaitsFor) {
    Reader reader;
    reader.view.reports = {make_report(reader.view, 0, 20)};
    DatasetReport& told = reader.view.reports[0].datasets[0];
    told.manifest_state = ManifestState::kListing;
    told.error = "no sidecar of the dataset's owner serves this node yet";
    Condition fillers;
    fillers.type = "FillersReady";
    fillers.status = ConditionStatus::kFalse;
    fillers.message = "1 of 1 fillers are not ready: node n1: pod p is pending";
    reader.view.fillers["uid-imagenet"] = fillers;
    const TrainingJobStatus status = status_at(reader.view, 20);
    expect_data_ready(status, "WaitingForOwner");
    const std::string& message = find_condition(status.conditions, "DataReady")->message;
    EXPECT_NE(message.find("namespace data: no sidecar of"), std::string::npos) << message;
    EXPECT_NE(message.find("node n1: pod p is pending"), std::string::npos) << message;
    told.manifest_state = ManifestState::kFailed;
    expect_data_ready(status_at(reader.view, 20), "WaitingForOwner");
    reader.view.fillers["uid-imagenet"].status = ConditionStatus::kTrue;
    expect_data_ready(status_at(reader.view, 20), "OriginFailed");
}

TEST(GuestStatus, TakesGuestBytesFromTheOwnersReports) {
    Reader reader;
    reader.view.reports = {make_report(reader.view, 0, 20)};
    reader.view.reports[0].datasets[0].resident_bytes = gib(9);
    for (const char* node : {"n1", "n9"}) {
        Holding holding;
        holding.pool = "nvme";
        holding.node = node;
        holding.dataset_uid = "uid-imagenet";
        holding.resident = gib(2);
        reader.view.holdings.push_back(holding);
    }
    const TrainingJobStatus status = status_at(reader.view, 20);
    EXPECT_EQ(status.cache->used_bytes, count_of(gib(2)));
    EXPECT_EQ(status.datasets.at(0).used_bytes, count_of(gib(2)));
}

}  // namespace
}  // namespace stoker::control
