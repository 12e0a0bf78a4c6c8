#include <chrono>
#include <string>

#include <gtest/gtest.h>

#include "operator/api/cache_pool.h"
#include "operator/api/cache_quota.h"
#include "operator/api/dataset.h"
#include "operator/api/training_job.h"

namespace stoker::control {
namespace {

WallTime at(int second) {
    return WallTime{std::chrono::seconds{second}};
}

std::vector<Condition> some_conditions() {
    return {
        {"Complete", ConditionStatus::kFalse, 4, at(10), "Running", ""},
        {"DataReady", ConditionStatus::kUnknown, 4, at(11), "Silent", "quotes \" and ü / 世界"},
        {"Running", ConditionStatus::kTrue, 4, at(12), "Running", "All ranks run."}};
}

ObjectMeta some_meta() {
    ObjectMeta meta;
    meta.ns = "team";
    meta.name = "thing";
    meta.uid = "uid-1";
    return meta;
}

TEST(StatusPatch, RoundTripsATrainingJob) {
    TrainingJob job;
    job.meta = some_meta();
    TrainingJobStatus& status = job.status;
    status.observed_generation = 4;
    status.conditions = some_conditions();
    status.columns = {"1Gi/2Gi", "62%", "2.7s", "3Gi", "120Mi/s"};
    status.start_time = at(5);
    status.completion_time = at(6);
    status.attempt = 2;
    status.restarts = 1;
    status.last_restart_time = at(7);
    status.jobs = {{"thing-a2", 4, 3, 2, 1}};
    status.cache = CacheStatus{
        "p",
        2,
        1,
        3,
        4,
        5,
        6,
        7,
        "0.62",
        at(20),
        BenefitStatus{"1", "2", "3", "Measured", "900", "1.5"}};
    status.profile = ProfileStatus{1, 2, 3, 4, "DataBound", "0.35", "0.8"};
    status.progress = ProgressStatus{3, 21, 400, 9120};
    status.datasets = {
        {"train", "d1", 1, 2, 3, 4, "000000000000beef", 2, "a/b.png"}, {"val", "", 5, 6, 7, 8}};
    const Result<TrainingJob> read = read_document<TrainingJob>(status_patch(job));
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(read->status, status);
    EXPECT_EQ(read->meta, job.meta);
}

TEST(StatusPatch, RoundTripsADataset) {
    Dataset dataset;
    dataset.meta = some_meta();
    dataset.status = {
        4,
        some_conditions(),
        {"137Gi", "80Gi", "58%", "62%"},
        147102629888,
        5000,
        1,
        2,
        3,
        "0.62",
        4,
        5,
        DatasetPeersStatus{2, 7, 8, 9, 10, SamplePlacement::kClairvoyant},
        DatasetPackingStatus{"d1", "pack-1", 1, 2, 3, 4, at(7), at(8)},
        "00ff",
        at(9),
        {{"p", "n1", 7, 2}, {"p", "n2", 6, 1}}};
    const Result<Dataset> read = read_document<Dataset>(status_patch(dataset));
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(read->status, dataset.status);
}

TEST(StatusPatch, RoundTripsACachePool) {
    CachePool pool;
    pool.meta = some_meta();
    pool.meta.ns.clear();
    pool.status = {4, some_conditions(), {"3/4", "1Ti", "2Ti"}, 1, 2, 3, 3, 4, at(9)};
    const Result<CachePool> read = read_document<CachePool>(status_patch(pool));
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(read->status, pool.status);
    EXPECT_EQ(status_patch(pool).text().find("namespace"), std::string::npos);
}

TEST(StatusPatch, RoundTripsACacheQuota) {
    CacheQuota quota;
    quota.meta = some_meta();
    quota.status = {
        4,
        some_conditions(),
        {"1Ti", "2Gi", "3Gi", "60%"},
        1,
        2,
        3,
        600,
        {{"a", 5, ""}, {"b", 4, "1"}}};
    const Result<CacheQuota> read = read_document<CacheQuota>(status_patch(quota));
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(read->status, quota.status);
}

TEST(StatusPatch, ContainsTheUidToPreventRecreation) {
    TrainingJob job;
    job.meta = some_meta();
    const std::string body = status_patch(job).text();
    EXPECT_NE(body.find(R"("apiVersion":"stoker.dev/v1alpha1")"), std::string::npos) << body;
    EXPECT_NE(body.find(R"("kind":"TrainingJob")"), std::string::npos) << body;
    EXPECT_NE(body.find(R"("uid":"uid-1")"), std::string::npos) << body;
    EXPECT_EQ(body.find("\"spec\""), std::string::npos) << body;
}

TEST(StatusPatch, ConditionsAlwaysHaveAMessage) {
    TrainingJob job;
    job.status.conditions = {{"Running", ConditionStatus::kTrue, 1, at(1), "Running", ""}};
    EXPECT_NE(status_patch(job).text().find(R"("message":"")"), std::string::npos);
}

}  // namespace
}  // namespace stoker::control
