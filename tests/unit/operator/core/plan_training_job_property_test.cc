// A TrainingJob in a simulated cluster where pods crash, nodes vanish, users change objects and
// writes get lost.

#include <algorithm>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "common/base/prng.h"
#include "operator/core/plan_training_job.h"
#include "tests/unit/operator/core/fake_kueue.h"
#include "tests/unit/operator/core/make_training_job.h"
#include "tests/unit/operator/core/test_seed.h"

namespace stoker::control {
namespace {

constexpr int kRounds = 60;
constexpr int kTicks = 120;
constexpr std::int64_t kTickSeconds = 7;

template <class T>
void shuffle(std::vector<T>& items, Prng& prng) {
    for (std::size_t i = items.size(); i > 1; --i) {
        std::swap(items[i - 1], items[prng.below(i)]);
    }
}

// Simulates the API server, Job controller, kubelets, garbage collector and Kueue, as far as the
// operator depends on them.
class World {
public:
    explicit World(std::uint64_t seed)
        : prng_(seed) {
        view_ = make_view();
        view_.job.spec.run_policy.backoff_limit = static_cast<std::int64_t>(prng_.below(4));
        if (prng_.below(4) == 0) {
            view_.job.meta.labels[std::string{kQueueLabel}] = "q";
            view_.kueue.installed = true;
        }
        if (prng_.below(6) == 0) {
            view_.job.spec.run_policy.active_deadline_seconds = 300;
        }
    }

    [[nodiscard]] const TrainingJobView& view() const { return view_; }

    [[nodiscard]] Moment now() const { return moment(seconds_); }

    [[nodiscard]] bool runs() const {
        return std::ranges::any_of(
            view_.jobs, [](const Job& job) { return !job.meta.deleting_since; });
    }

    [[nodiscard]] std::string state() const {
        const Condition* finished = find_condition(view_.job.status.conditions, "Finished");
        return finished == nullptr ? "" : finished->reason;
    }

    // Carries out the operator's plan; unless `everything`, stops after a random part.
    void carry_out(const TrainingJobPlan& plan, bool everything) {
        if (!everything && prng_.below(10) == 0) {
            return;  // the status was not written, so no action follows
        }
        check_status(plan.status);
        view_.job.status = plan.status;
        for (const Action& action : plan.actions) {
            if (!everything && prng_.below(8) == 0) {
                return;
            }
            std::visit([this](const auto& what) { apply(what); }, action);
        }
    }

    void meddle() {
        switch (prng_.below(15)) {
            case 0:
                return fail_a_pod(false);
            case 1:
                return fail_a_pod(true);
            case 2:
                return lose_a_node();
            case 3:
                return heal_nodes();
            case 4:
                view_.job.spec.suspend = !view_.job.spec.suspend;
                return;
            case 5:
                if (view_.job.spec.suspend) {
                    view_.job.spec.trainer.image = "train:" + std::to_string(prng_.below(3));
                }
                return;
            case 6:
                view_.datasets = resolve_datasets(
                    view_.job,
                    prng_.below(2) == 0 ? std::vector<Dataset>{} : std::vector{make_dataset()});
                return;
            case 7:
                if (!view_.jobs.empty()) {
                    mark_deleting(view_.jobs[prng_.below(view_.jobs.size())]);
                }
                return;
            case 8:
                if (is_admitted()) {
                    evict(view_.kueue, "Preempted", seconds_);
                }
                return;
            default:
                return;
        }
    }

    void heal() {
        heal_nodes();
        view_.job.spec.suspend = false;
        view_.datasets = resolve_datasets(view_.job, {make_dataset()});
    }

    // One step of everything but the operator.
    void tick() {
        seconds_ += kTickSeconds;
        for (Job& job : view_.jobs) {
            run_job(job);
        }
        remove_what_is_gone();
        if (view_.kueue.workload && !has_quota() && prng_.below(3) == 0) {
            admit(view_.kueue, seconds_);
        }
    }

    void complete() {
        for (Job& job : view_.jobs) {
            if (!job.suspend && !job.end && !job.meta.deleting_since && job.ready > 0) {
                job.end = JobEnd{true, "CompletionsReached", "", wall(seconds_)};
                for (Pod& pod : view_.pods) {
                    if (job_name_of(pod) == job.meta.name) {
                        pod.phase = PodPhase::kSucceeded;
                    }
                }
            }
        }
    }

    TrainingJobView shuffled() {
        TrainingJobView mixed = view_;
        shuffle(mixed.jobs, prng_);
        shuffle(mixed.pods, prng_);
        shuffle(mixed.nodes, prng_);
        return mixed;
    }

private:
    [[nodiscard]] bool has_quota() const {
        return view_.kueue.workload && is_true(view_.kueue.workload->conditions, "QuotaReserved");
    }

    [[nodiscard]] bool is_admitted() const {
        return has_quota() && !is_true(view_.kueue.workload->conditions, "Evicted") &&
               !is_true(view_.kueue.workload->conditions, "Finished");
    }

    [[nodiscard]] bool uses_quota() const {
        return std::ranges::any_of(
            view_.pods, [this](const Pod& pod) { return !has_ended(pod) && !is_lost(pod); });
    }

    void check_status(const TrainingJobStatus& next) const {
        EXPECT_GE(next.attempt, view_.job.status.attempt);
        EXPECT_LE(next.attempt, view_.job.status.attempt + 1);
        EXPECT_GE(next.restarts, view_.job.status.restarts);
        EXPECT_LE(next.restarts, view_.job.spec.run_policy.backoff_limit);
        EXPECT_LE(next.restarts, failure_count_) << "a Job that is being deleted was judged";
        for (const std::string type : {"Complete", "Failed"}) {
            if (is_true(view_.job.status.conditions, type)) {
                EXPECT_TRUE(is_true(next.conditions, type)) << "a finished job stays finished";
                EXPECT_EQ(next.completion_time, view_.job.status.completion_time);
            }
        }
        EXPECT_FALSE(is_true(next.conditions, "Complete") && is_true(next.conditions, "Failed"));
    }

    bool is_lost(const Pod& pod) const {
        return std::any_of(view_.nodes.begin(), view_.nodes.end(), [&](const Node& node) {
            return node.meta.name == pod.node_name && !node.ready;
        });
    }

    void apply(const CreateService& /*action*/) { view_.service = make_service(view_); }

    void apply(const CreateWorkload& action) {
        if (!view_.kueue.workload) {
            view_.kueue.workload = as_made(action.workload);
        }
    }

    void apply(const DeleteWorkload& /*action*/) {
        EXPECT_FALSE(uses_quota());
        view_.kueue.workload.reset();
    }

    void apply(const ReleaseQuota& action) {
        EXPECT_FALSE(uses_quota());
        view_.kueue.workload = action.workload;
    }

    void apply(const TellWorkload& action) {
        EXPECT_TRUE(action.condition.type == "PodsReady" || !uses_quota());
        set_condition(view_.kueue.workload->conditions, action.condition);
    }

    void apply(const CreateJob& action) {
        EXPECT_TRUE(is_admitted() || !is_queued(view_.job));
        for (const Pod& pod : view_.pods) {
            EXPECT_TRUE(has_ended(pod) || is_lost(pod) || job_name_of(pod) == action.job.meta.name)
                << "two attempts would run at once: " << pod.meta.name;
        }
        for (const Job& job : view_.jobs) {
            if (job.meta.name == action.job.meta.name) {
                return;  // already exists
            }
        }
        Job job = make_job(view_, attempt_of(action.job.meta));
        job.meta.uid += "/" + std::to_string(++uid_count_);
        job.meta.annotations = action.job.meta.annotations;
        job.active = job.ready = 0;
        job.start_time.reset();
        view_.jobs.push_back(std::move(job));
    }

    void apply(const DeleteJob& action) {
        for (Job& job : view_.jobs) {
            if (job.meta.uid == action.uid) {
                EXPECT_FALSE(job.end && job.end->succeeded) << "a success must stay";
                mark_deleting(job);
            }
        }
    }

    void apply(const DeleteTrainingJob& /*action*/) { ADD_FAILURE() << "the spec has no ttl"; }

    void mark_deleting(Job& job) const {
        if (!job.meta.deleting_since) {
            job.meta.deleting_since = wall(seconds_);
        }
    }

    void run_job(Job& job) {
        if (job.meta.deleting_since || (job.end && !job.end->succeeded) || job.suspend) {
            stop_pods(job);
            return;
        }
        if (job.end) {
            return;
        }
        if (!job.start_time) {
            job.start_time = wall(seconds_);
        }
        job.active = job.ready = 0;
        for (std::int64_t rank = 0; rank < view_.job.spec.trainer.node_count; ++rank) {
            ensure_pod(job, rank);
        }
    }

    void ensure_pod(Job& job, std::int64_t rank) {
        const std::int64_t attempt = attempt_of(job.meta);
        const std::string name = make_pod(view_, attempt, rank).meta.name;
        for (const Pod& pod : view_.pods) {
            if (pod.meta.name == name) {
                job.ready += has_ended(pod) || pod.meta.deleting_since ? 0 : 1;
                job.active += 1;
                return;
            }
        }
        view_.pods.push_back(make_pod(view_, attempt, rank));
        job.active += 1;
    }

    // A trainer may exit with 143 on SIGTERM, which the Job controller counts as a failure.
    void stop_pods(Job& job) {
        job.active = job.ready = 0;
        if (job.meta.deleting_since && !job.end && prng_.below(2) == 0) {
            job.end = JobEnd{false, "PodFailurePolicy", "exit code 143", wall(seconds_)};
        }
        for (Pod& pod : view_.pods) {
            if (job_name_of(pod) == job.meta.name && !pod.meta.deleting_since) {
                pod.meta.deleting_since = wall(seconds_);
            }
        }
    }

    // Removes terminating pods, except on lost nodes, and deleted Jobs without pods.
    void remove_what_is_gone() {
        std::erase_if(view_.pods, [this](const Pod& pod) {
            return pod.meta.deleting_since && !is_lost(pod) && prng_.below(2) == 0;
        });
        std::erase_if(view_.jobs, [this](const Job& job) {
            return job.meta.deleting_since &&
                   std::none_of(view_.pods.begin(), view_.pods.end(), [&](const Pod& pod) {
                       return job_name_of(pod) == job.meta.name;
                   });
        });
    }

    void fail_a_pod(bool by_disruption) {
        for (Pod& pod : view_.pods) {
            for (Job& job : view_.jobs) {
                const bool runs = job_name_of(pod) == job.meta.name && !job.end &&
                                  !job.meta.deleting_since && !has_ended(pod) && !is_lost(pod);
                if (runs && prng_.below(2) == 0) {
                    pod.phase = PodPhase::kFailed;
                    pod.trainer.exit_code = 1;
                    pod.disruption = by_disruption ? "EvictionByEvictionAPI" : "";
                    ++failure_count_;
                    job.end = JobEnd{false, "PodFailurePolicy", "exit code 1", wall(seconds_)};
                    return;
                }
            }
        }
    }

    void lose_a_node() {
        Node& node = view_.nodes[prng_.below(view_.nodes.size())];
        if (!node.ready) {
            return;
        }
        node.ready = false;
        // Taint eviction has deleted the node's pods some minutes after the node stopped reporting.
        node.not_ready_since = wall(seconds_ - 300);
        for (Pod& pod : view_.pods) {
            if (pod.node_name == node.meta.name && !has_ended(pod)) {
                pod.meta.deleting_since = wall(seconds_);
            }
        }
    }

    void heal_nodes() {
        for (Node& node : view_.nodes) {
            node.ready = true;
            node.not_ready_since.reset();
        }
    }

    Prng prng_;
    TrainingJobView view_;
    std::int64_t seconds_ = 1000;
    std::uint64_t uid_count_ = 0;
    std::int64_t failure_count_ = 0;
};

template <class Check>
void for_random_worlds(Check check) {
    const std::uint64_t seed = test_seed();
    for (int round = 0; round < kRounds && !::testing::Test::HasFailure(); ++round) {
        SCOPED_TRACE("round " + std::to_string(round));
        World world{seed + static_cast<std::uint64_t>(round)};
        check(world);
    }
}

TEST(PlanTrainingJobProperty, NeverRunsTwoAttemptsAtOnce) {
    for_random_worlds([](World& world) {
        for (int tick = 0; tick < kTicks && !::testing::Test::HasFailure(); ++tick) {
            SCOPED_TRACE("tick " + std::to_string(tick) + ", " + world.state());
            world.meddle();
            world.carry_out(plan_training_job(world.view(), world.now()), false);
            world.tick();
        }
    });
}

TEST(PlanTrainingJobProperty, DoesNotDependOnTheOrderOfInputs) {
    for_random_worlds([](World& world) {
        for (int tick = 0; tick < kTicks && !::testing::Test::HasFailure(); ++tick) {
            world.meddle();
            const TrainingJobPlan plan = plan_training_job(world.view(), world.now());
            EXPECT_EQ(plan_training_job(world.shuffled(), world.now()), plan);
            world.carry_out(plan, false);
            world.tick();
        }
    });
}

// Deleting a lost attempt, creating the next one and observing it take three plans; more would be a
// loop.
TEST(PlanTrainingJobProperty, CarriedOutPlansSettle) {
    for_random_worlds([](World& world) {
        for (int tick = 0; tick < kTicks && !::testing::Test::HasFailure(); ++tick) {
            SCOPED_TRACE("tick " + std::to_string(tick) + ", " + world.state());
            world.meddle();
            for (int step = 0; step < 4; ++step) {
                world.carry_out(plan_training_job(world.view(), world.now()), true);
            }
            const TrainingJobPlan plan = plan_training_job(world.view(), world.now());
            EXPECT_TRUE(plan.actions.empty());
            EXPECT_TRUE(plan.events.empty());
            EXPECT_EQ(plan.status, world.view().job.status);
            if (world.state() == "Suspended" || world.state() == "Queued") {
                EXPECT_FALSE(world.runs());
            }
            world.tick();
        }
    });
}

TEST(PlanTrainingJobProperty, EveryJobEndsOnceTheFaultsStop) {
    for_random_worlds([](World& world) {
        for (int tick = 0; tick < kTicks; ++tick) {
            world.meddle();
            world.carry_out(plan_training_job(world.view(), world.now()), false);
            world.tick();
        }
        for (int tick = 0; tick < 200; ++tick) {
            world.heal();
            const TrainingJobPlan plan = plan_training_job(world.view(), world.now());
            world.carry_out(plan, true);
            if (world.state() == "Complete" || world.state() == "Failed") {
                return;
            }
            world.tick();
            if (world.state() == "Running") {
                world.complete();
            }
        }
        ADD_FAILURE() << "still " << world.state() << " in the end";
    });
}

}  // namespace
}  // namespace stoker::control
