// Scenarios in the operator's world: one event each, and what must follow it. The world's oracle
// checks its promises meanwhile; docs/design/simulation.md.
#include <algorithm>

#include <cpprest/json.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "operator/kube/resource_kind.h"
#include "tests/world/control_world.h"
#include "tests/world/seed_tests.h"

namespace stoker::world {

namespace kinds = control::kinds;
using control::find_at;
using control::integer_at;
using control::string_at;
using std::chrono::minutes;
using std::chrono::seconds;

// No faults from the seed. Trainers run until they are told to end. Namespace "na" has one Dataset
// "d0" of 10 GiB and one TrainingJob "mnist" with minBytes for all of it, on one node of two.
class ControlScenario : public ::testing::Test {
protected:
    ControlScenario() {
        world_.cluster_->run_for_ever();
        for (const ObjectKey& job : std::exchange(world_.jobs_, {})) {
            world_.api_.remove(kinds::kTrainingJobs, job);
        }
        while (world_.cluster_->nodes().size() < 2) {
            world_.cluster_->add_node(fmt::format("n{}", world_.nodes_made_++));
        }
        set_capacity(gib(100));
        for (const std::string ns : kNamespaces) {
            set_quota(ns, {.nominal = gib(60)});
        }
        for (auto& [uid, dataset] : world_.datasets_) {
            if (dataset.key == kDataset) {
                dataset.total = gib(10);
            }
        }
        world_.schedule_.run_in(seconds{1}, [this] { world_.check(); });
        run_for(seconds{20});
        add_job("mnist");
        run_for(minutes{2});
    }

    // The world comes to rest, and every promise is kept.
    void TearDown() override {
        const ControlOutcome outcome = world_.come_to_rest();
        EXPECT_EQ(outcome.accusation, "") << last_lines(outcome.log, 60);
    }

    void run_for(Duration time) {
        const TimePoint end = world_.schedule_.now() + time;
        while (world_.accusation_.empty() && world_.step(end)) {
        }
        ASSERT_EQ(world_.accusation_, "");
    }

    void add_job(const std::string& name, const std::string& ns = "na") {
        const auto made = world_.api_.create(
            kinds::kTrainingJobs,
            ns,
            fmt::format(
                R"({{"metadata":{{"name":"{}"}},"spec":{{"trainer":{{"image":"trainer:1"}},)"
                R"("runPolicy":{{"backoffLimit":1}},)"
                R"("cache":{{"minBytes":"10Gi"}},)"
                R"("datasets":[{{"name":"train","datasetRef":{{"name":"d0","namespace":"{}"}}}}]}}}})",
                name,
                ns));
        ASSERT_EQ(made.status, 201) << made.body;
    }

    void warm_up(const std::string& spec = "") {
        const auto made = world_.api_.create(
            kinds::kDatasetWarmups,
            "na",
            fmt::format(
                R"({{"metadata":{{"name":"warm"}},"spec":{{"datasetRef":{{"name":"d0"}}{}}}}})",
                spec));
        ASSERT_EQ(made.status, 201) << made.body;
    }

    // State of the DatasetWarmup, as in its column.
    [[nodiscard]] std::string warmup_state() const {
        const auto object = world_.api_.find(kinds::kDatasetWarmups, kWarmup);
        return object ? string_at(object->value(), {"status", "columns", "state"}) : "gone";
    }

    [[nodiscard]] std::size_t fillers() const {
        return static_cast<std::size_t>(std::ranges::count_if(
            world_.cluster_->pods(), [](const auto& it) { return it.second.owner.empty(); }));
    }

    void suspend(
        bool value,
        const control::ResourceKind& kind = kinds::kTrainingJobs,
        const ObjectKey& key = kJob) {
        world_.api_.merge(kind, key, fmt::format(R"({{"spec":{{"suspend":{}}}}})", value));
    }

    void end_trainers(bool succeed) {
        for (const auto& [key, pod] : world_.cluster_->pods()) {
            if (!pod.owner.empty()) {
                world_.cluster_->end_trainer(ObjectKey{key}, succeed);
            }
        }
    }

    void set_quota(const std::string& ns, const ControlWorld::Quota& quota) {
        world_.quotas_[ns] = quota;
        world_.behind_at_ = world_.schedule_.now();
        world_.api_.merge(
            kinds::kCacheQuotas, {ns, "quota"}, fmt::format("{{{}}}", world_.quota_spec(quota)));
    }

    void shrink_quota(Bytes nominal) {
        set_quota("na", {.nominal = nominal, .borrowing = {}, .lending = {}});
    }

    void set_capacity(Bytes bytes) {
        world_.capacity_ = bytes;
        world_.behind_at_ = world_.schedule_.now();
        world_.api_.merge(
            kinds::kCachePools,
            {"", "nvme"},
            fmt::format(R"({{"spec":{{"capacityPerNode":"{}"}}}})", bytes.count()));
    }

    void stop_operator() { world_.operators_.clear(); }

    void start_operator() { world_.start_operator(); }

    void replace_leader() { world_.replace_leader(); }

    // New watchers get old lists, and no events of the time since.
    void begin_stale_lists() { world_.api_.begin_stale_lists(); }

    void compact_history() { world_.compact_history(); }

    void set_api_down(bool is_down) {
        world_.api_.faults.is_down = is_down;
        world_.api_.cut_watches();
    }

    ApiFaults& api_faults() { return world_.api_.faults; }

    void lose_nodes_of_job() {
        for (const auto& [key, pod] : world_.cluster_->pods()) {
            if (pod.owner == kJob.name) {
                world_.cluster_->lose_node(pod.node);
                return;
            }
        }
    }

    void kill_sidecar() {
        for (auto& [key, pod] : world_.cluster_->pods()) {
            if (pod.sidecar) {
                world_.cluster_->kill_sidecar(pod);
            }
        }
    }

    void remove_dataset() {
        const auto found = std::ranges::find_if(
            world_.datasets_, [](const auto& it) { return it.second.key == kDataset; });
        world_.api_.remove(kinds::kDatasets, kDataset);
        world_.gone_datasets_.insert(*found);
        world_.datasets_.erase(found);
        world_.behind_at_ = world_.schedule_.now();
    }

    // A Dataset of the same name as the removed one.
    void make_dataset() { world_.make_dataset("na", 0); }

    void remove(const control::ResourceKind& kind, const ObjectKey& key) {
        world_.api_.remove(kind, key);
    }

    void occupy_name(const std::string& name) {
        const auto made = world_.api_.create(
            kinds::kJobs,
            "na",
            fmt::format(R"({{"metadata":{{"name":"{}"}},"spec":{{"completions":1}}}})", name));
        ASSERT_EQ(made.status, 201) << made.body;
    }

    // "False Running": status and reason of the condition Finished.
    [[nodiscard]] std::string state(const std::string& job = "mnist") const {
        const auto object = world_.api_.find(kinds::kTrainingJobs, {"na", job});
        const auto* conditions =
            object ? find_at(object->value(), {"status", "conditions"}) : nullptr;
        for (std::size_t i = 0; conditions != nullptr && i < conditions->size(); ++i) {
            if (string_at(conditions->at(i), {"type"}) == "Finished") {
                return string_at(conditions->at(i), {"status"}) + " " +
                       string_at(conditions->at(i), {"reason"});
            }
        }
        return "";
    }

    [[nodiscard]] std::int64_t number(const std::string& field) const {
        const auto object = world_.api_.find(kinds::kTrainingJobs, kJob);
        return object ? integer_at(object->value(), {"status", field}).value_or(0) : -1;
    }

    // The names of all Jobs in "na".
    [[nodiscard]] std::vector<std::string> jobs() const {
        std::vector<std::string> names;
        for (const auto& [key, job] : world_.api_.all(kinds::kJobs)) {
            if (key.ns == "na") {
                names.push_back(key.name);
            }
        }
        return names;
    }

    [[nodiscard]] bool has_pods() const { return !world_.api_.all(kinds::kPods).empty(); }

    // Bytes of namespace "na" on all nodes.
    [[nodiscard]] Bytes residents() const {
        Bytes sum{};
        for (const auto& [name, node] : world_.cluster_->nodes()) {
            for (const auto& [uid, directory] : node.directories) {
                sum += directory.ns == "na" && !node.is_gone ? directory.resident : Bytes{};
            }
        }
        return sum;
    }

    static inline const ObjectKey kDataset{"na", "d0"};
    static inline const ObjectKey kJob{"na", "mnist"};
    static inline const ObjectKey kWarmup{"na", "warm"};

private:
    ControlWorld world_{first_seed()};
};

namespace {

using Names = std::vector<std::string>;

TEST_F(ControlScenario, JobRunsAndCompletes) {
    EXPECT_EQ(state(), "False Running");
    EXPECT_EQ(jobs(), Names{"mnist-a1"});
    EXPECT_EQ(number("attempt"), 1);
    end_trainers(true);
    run_for(seconds{30});
    EXPECT_EQ(state(), "True Complete");
    EXPECT_EQ(residents(), gib(10)) << "the next job begins warm";
}

TEST_F(ControlScenario, FailedAttemptsAreReplacedUpToTheLimit) {
    end_trainers(false);
    run_for(minutes{2});
    EXPECT_EQ(state(), "False Running");
    EXPECT_EQ(jobs(), Names{"mnist-a2"});
    EXPECT_EQ(number("restarts"), 1);
    end_trainers(false);
    run_for(minutes{1});
    EXPECT_EQ(state(), "True Failed");
    EXPECT_EQ(jobs(), Names{"mnist-a2"});
}

TEST_F(ControlScenario, SuspensionStopsThePodsAndResumptionIsNoRestart) {
    suspend(true);
    run_for(minutes{1});
    EXPECT_EQ(state(), "False Suspended");
    EXPECT_FALSE(has_pods());
    suspend(false);
    run_for(minutes{1});
    EXPECT_EQ(state(), "False Running");
    EXPECT_EQ(number("attempt"), 1);
    EXPECT_EQ(number("restarts"), 0);
}

TEST_F(ControlScenario, DeletedJobLeavesNothing) {
    remove(kinds::kTrainingJobs, kJob);
    run_for(minutes{1});
    EXPECT_EQ(jobs(), Names{});
    EXPECT_FALSE(has_pods());
}

TEST_F(ControlScenario, DeletedDatasetIsSweptOffTheNodes) {
    end_trainers(true);
    run_for(seconds{30});
    ASSERT_EQ(residents(), gib(10));
    remove_dataset();
    run_for(minutes{2});
    EXPECT_EQ(residents(), Bytes{});
}

TEST_F(ControlScenario, JobWaitsForItsDataset) {
    remove(kinds::kTrainingJobs, kJob);
    remove_dataset();
    run_for(minutes{1});
    add_job("early");
    run_for(minutes{1});
    EXPECT_EQ(state("early"), "False Waiting");
    EXPECT_EQ(jobs(), Names{});
    make_dataset();
    run_for(minutes{1});
    EXPECT_EQ(state("early"), "False Running");
}

TEST_F(ControlScenario, ForeignJobWithTheNextAttemptsNameIsLeftAlone) {
    occupy_name("mnist-a2");
    end_trainers(false);
    run_for(minutes{1});
    EXPECT_EQ(state(), "False NameTaken");
    remove(kinds::kJobs, {"na", "mnist-a2"});
    run_for(minutes{1});
    EXPECT_EQ(state(), "False Running");
}

TEST_F(ControlScenario, ReplacedLeaderChangesNothing) {
    replace_leader();
    run_for(minutes{1});
    EXPECT_EQ(jobs(), Names{"mnist-a1"});
    EXPECT_EQ(residents(), gib(10));
}

TEST_F(ControlScenario, NewLeadersOldListDoesNotReviveACompleteJob) {
    begin_stale_lists();
    end_trainers(true);
    run_for(seconds{30});
    EXPECT_EQ(state(), "True Complete");
    compact_history();
    replace_leader();
    run_for(minutes{1});
    EXPECT_EQ(state(), "True Complete");
}

TEST_F(ControlScenario, OperatorGoneForAMinuteCatchesUp) {
    stop_operator();
    end_trainers(false);
    run_for(minutes{1});
    EXPECT_EQ(residents(), gib(10)) << "expired grants evict nothing";
    start_operator();
    run_for(minutes{2});
    EXPECT_EQ(jobs(), Names{"mnist-a2"});
    EXPECT_EQ(number("restarts"), 1);
}

TEST_F(ControlScenario, RestartedApiServerLosesNothing) {
    set_api_down(true);
    end_trainers(false);
    run_for(seconds{30});
    set_api_down(false);
    run_for(minutes{2});
    EXPECT_EQ(jobs(), Names{"mnist-a2"});
    EXPECT_EQ(number("restarts"), 1);
}

TEST_F(ControlScenario, ErrorsOfTheApiServerDoNotChangeTheOutcome) {
    api_faults().refused = api_faults().lost = api_faults().conflicts = 0.25;
    end_trainers(false);
    run_for(minutes{4});
    EXPECT_EQ(state(), "False Running");
    EXPECT_EQ(jobs(), Names{"mnist-a2"});
    EXPECT_EQ(number("restarts"), 1);
}

TEST_F(ControlScenario, SmallerQuotaTakesBytesBack) {
    shrink_quota(gib(2));
    run_for(minutes{1});
    EXPECT_LE(residents(), gib(2));
    EXPECT_GT(residents(), gib(1));
    EXPECT_EQ(state(), "False Running");
}

TEST_F(ControlScenario, ReplacedDatasetDoesNotEndTheAttempt) {
    remove_dataset();
    make_dataset();
    run_for(minutes{1});
    EXPECT_EQ(state(), "False Running");
    EXPECT_EQ(jobs(), Names{"mnist-a1"});
}

TEST_F(ControlScenario, JobOfALostNodeRunsOnAnother) {
    lose_nodes_of_job();
    run_for(minutes{5});
    EXPECT_EQ(state(), "False Running");
    EXPECT_EQ(number("attempt"), 2);
}

TEST_F(ControlScenario, KilledSidecarGetsItsGrantAgain) {
    kill_sidecar();
    run_for(minutes{2});
    EXPECT_EQ(jobs(), Names{"mnist-a1"});
    EXPECT_EQ(residents(), gib(10));
}

TEST_F(ControlScenario, WarmupFillsTheNodesAndItsFillersGo) {
    remove(kinds::kTrainingJobs, kJob);
    run_for(minutes{1});
    warm_up();
    run_for(minutes{2});
    EXPECT_EQ(warmup_state(), "Complete");
    run_for(minutes{2});
    EXPECT_EQ(fillers(), 0U);
    EXPECT_GE(residents(), gib(10));
}

TEST_F(ControlScenario, SuspendedWarmupHasNoFillersAndGoesOn) {
    warm_up(R"(,"suspend":true)");
    run_for(minutes{1});
    EXPECT_EQ(warmup_state(), "Suspended");
    suspend(false, kinds::kDatasetWarmups, kWarmup);
    run_for(seconds{5});
    suspend(true, kinds::kDatasetWarmups, kWarmup);
    run_for(minutes{3});
    EXPECT_EQ(fillers(), 0U);
    suspend(false, kinds::kDatasetWarmups, kWarmup);
    run_for(minutes{3});
    EXPECT_EQ(warmup_state(), "Complete");
}

TEST_F(ControlScenario, DeletedWarmupLeavesNoFiller) {
    warm_up();
    run_for(seconds{10});
    remove(kinds::kDatasetWarmups, kWarmup);
    run_for(minutes{3});
    EXPECT_EQ(fillers(), 0U);
}

TEST_F(ControlScenario, FinishedWarmupIsDeletedAtItsTtl) {
    warm_up(R"(,"ttlSecondsAfterFinished":180)");
    run_for(minutes{2});
    EXPECT_EQ(warmup_state(), "Complete");
    EXPECT_GT(fillers(), 0U);
    run_for(minutes{5});
    EXPECT_EQ(warmup_state(), "gone");
    EXPECT_EQ(fillers(), 0U);
}

TEST_F(ControlScenario, NewLeaderGoesOnWithAWarmupBesideAJob) {
    warm_up();
    run_for(seconds{10});
    replace_leader();
    run_for(minutes{4});
    EXPECT_EQ(warmup_state(), "Complete");
    EXPECT_EQ(state(), "False Running");
}

}  // namespace
}  // namespace stoker::world
