#pragma once

#include <string>
#include <vector>

#include <fmt/format.h>

#include "operator/api/cache_pool.h"
#include "operator/api/cache_quota.h"
#include "operator/api/training_job.h"
#include "operator/core/allocation/plan_allocation.h"
#include "operator/core/allocation/snapshot.h"

namespace stoker::cli {

// A realistic cluster: one pool of four nodes, three namespaces and five jobs: one I/O-bound, one
// partly I/O-bound, one compute-bound, one that borrows, one that has just started.
class BusyCluster {
public:
    BusyCluster() {
        for (const char* node : {"gpu-1", "gpu-2", "gpu-3", "gpu-4"}) {
            view_.nodes.push_back({"nvme", node, gib(500)});
        }
        view_.pools = {{"nvme"}};
        quota("speech", gib(400), gib(0), gib(200));
        quota("vision", gib(900), gib(300), gib(0));
        view_.step = mib(64);
        add("vision", "resnet", {"gpu-1", "gpu-2", "gpu-3", "gpu-4"}, gib(410), {3600, 1400, 32});
        add("vision", "vit", {"gpu-1", "gpu-2"}, gib(350), {900, 600, 16});
        add("speech", "whisper", {"gpu-3"}, gib(240), {300, 60, 8});
        add("nlp", "bert", {"gpu-4"}, gib(80), {40, 400, 8});
        add("nlp", "new", {"gpu-4"}, gib(90), {0, 0, 8});
    }

    [[nodiscard]] control::AllocationSnapshot snapshot() const {
        control::AllocationSnapshot result;
        result.version = "0.1.0";
        result.decided_at = WallTime{std::chrono::seconds{1'790'000'000}};
        result.served_at = result.decided_at + std::chrono::seconds{4};
        result.view = view_;
        result.plan = control::plan_allocation(view_);
        return result;
    }

    // Jobs with statuses as the operator writes them.
    [[nodiscard]] std::vector<control::TrainingJob> jobs() const {
        std::vector<control::TrainingJob> result;
        for (const control::JobAllocation& allocation : snapshot().plan.jobs) {
            result.push_back(job_of(allocation));
        }
        return result;
    }

    [[nodiscard]] control::TrainingJob job(const std::string& name) const {
        for (control::TrainingJob& job : jobs()) {
            if (job.meta.name == name) {
                return job;
            }
        }
        return {};
    }

    [[nodiscard]] std::vector<control::CacheQuota> quotas() const {
        std::vector<control::CacheQuota> result;
        for (const control::QuotaUse& use : snapshot().plan.quotas) {
            control::CacheQuota quota;
            quota.meta.ns = use.ns;
            quota.meta.name = "cache";
            quota.spec.pool_ref = use.pool;
            for (const control::QuotaView& view : view_.quotas) {
                if (view.ns == use.ns) {
                    quota.spec.nominal_quota = view.nominal;
                }
            }
            control::CacheQuotaStatus& status = quota.status;
            status.used_bytes = count(use.used);
            status.borrowed_bytes = count(use.borrowed);
            status.lent_bytes = count(use.lent);
            status.weighted_share = status.used_bytes * 1000 / count(quota.spec.nominal_quota);
            status.columns.share = fmt::format("{}%", status.weighted_share / 10);
            result.push_back(quota);
        }
        return result;
    }

    [[nodiscard]] std::vector<control::CachePool> pools() const {
        control::CachePool pool;
        pool.meta.name = "nvme";
        pool.status.capacity_bytes = count(gib(2000));
        pool.status.granted_bytes = count(snapshot().plan.granted_in_pool.at("nvme"));
        pool.status.nodes_ready = 4;
        pool.status.nodes_total = 4;
        return {pool};
    }

private:
    // The job's ingest rate and its origin's rate in MB/s; its GPUs.
    struct Needs {
        double ingest = 0;
        double origin = 0;
        int gpus = 0;
    };

    static std::int64_t count(Bytes bytes) { return static_cast<std::int64_t>(bytes.count()); }

    void quota(const std::string& ns, Bytes nominal, Bytes borrowing, Bytes lending) {
        control::QuotaView quota{ns, "nvme", nominal};
        quota.borrowing = borrowing;
        quota.lending = lending;
        view_.quotas.push_back(quota);
    }

    void add(
        const std::string& ns,
        const std::string& name,
        const std::vector<std::string>& nodes,
        Bytes dataset,
        const Needs& needs) {
        control::Demand demand;
        demand.job = {ns, name};
        demand.created_at = WallTime{std::chrono::seconds{view_.demands.size()}};
        demand.pool = "nvme";
        demand.nodes = nodes;
        demand.datasets = {{"train", name, dataset}};
        if (needs.ingest > 0) {
            constexpr double kMega = 1e6;
            demand.rates = control::JobRates{
                needs.ingest * kMega, needs.origin * kMega, 1, needs.origin >= needs.ingest};
        }
        view_.demands.push_back(demand);
        gpus_.push_back(needs.gpus);
    }

    static void set(control::TrainingJob& job, std::string type, std::string reason, bool holds) {
        control::Condition condition;
        condition.type = std::move(type);
        condition.status =
            holds ? control::ConditionStatus::kTrue : control::ConditionStatus::kFalse;
        condition.reason = std::move(reason);
        control::set_condition(job.status.conditions, condition);
    }

    [[nodiscard]] control::TrainingJob job_of(const control::JobAllocation& allocation) const {
        control::TrainingJob job;
        job.meta.ns = allocation.job.ns;
        job.meta.name = allocation.job.name;
        std::size_t index = 0;
        while (view_.demands[index].job != allocation.job) {
            ++index;
        }
        const control::Demand& demand = view_.demands[index];
        job.spec.trainer.node_count = static_cast<std::int32_t>(demand.nodes.size());
        const int gpus = gpus_[index] / job.spec.trainer.node_count;
        job.spec.trainer.resources.limits["nvidia.com/gpu"] = std::to_string(gpus);
        set(job, "Finished", "Running", false);
        set(job, "CacheAllocated", std::string{to_string(allocation.reason)}, true);
        job.status.conditions.front().message = allocation.message;
        control::CacheStatus cache;
        cache.pool = allocation.pool;
        cache.wanted_bytes = count(allocation.wanted);
        cache.allocated_bytes = count(allocation.granted);
        cache.borrowed_bytes = count(allocation.borrowed);
        cache.used_bytes = count(allocation.granted);
        const control::AllocationNumbers& numbers = allocation.numbers;
        job.status.columns.cache =
            to_string(allocation.granted) + "/" + to_string(allocation.wanted);
        job.status.columns.hit = "62%";
        job.status.columns.origin = "410Mi/s";
        cache.origin_bytes_per_second = count(mib(410));
        if (numbers.rate > 0) {
            const double bytes = static_cast<double>(demand.datasets[0].total->count());
            constexpr double kSample = 110 * 1024;
            control::ProfileStatus profile;
            profile.samples_per_second_needed =
                static_cast<std::int64_t>(numbers.ingest_rate / kSample);
            profile.samples_per_second_remote =
                static_cast<std::int64_t>(numbers.origin_rate / kSample);
            profile.compute_seconds_per_epoch =
                static_cast<std::int64_t>(bytes / numbers.ingest_rate);
            profile.wait_share = "0.35";
            job.status.profile = profile;
            const double saved = bytes / numbers.rate_without_cache - bytes / numbers.rate;
            control::BenefitStatus benefit;
            benefit.seconds_saved_per_epoch = fmt::format("{:.0f}", saved);
            benefit.per_gib = "0.5";
            benefit.marginal_per_gib = "0.4";
            benefit.method = "Predicted";
            cache.benefit = benefit;
            job.status.datasets = {
                {"train",
                 "uid-of-" + job.meta.name,
                 static_cast<std::int64_t>(bytes),
                 static_cast<std::int64_t>(bytes / kSample),
                 0,
                 0}};
        }
        job.status.cache = cache;
        return job;
    }

    control::AllocationView view_;
    std::vector<int> gpus_;
};

}  // namespace stoker::cli
