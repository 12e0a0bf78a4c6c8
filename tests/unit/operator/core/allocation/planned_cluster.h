#pragma once

#include <chrono>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "operator/core/allocation/plan_allocation.h"

// Small clusters of two nodes, and accessors for their plans.
namespace stoker::control {

inline constexpr auto kPool = "nvme";

inline DemandDataset dataset(const std::string& uid, std::optional<Bytes> total) {
    return {"train", uid, total};
}

// A job of namespace "a" in mode Auto, older than those with a larger number.
inline Demand demand(
    int number, std::vector<std::string> nodes, std::vector<DemandDataset> datasets) {
    Demand result;
    result.job = {"a", "job" + std::to_string(number)};
    result.created_at = WallTime{std::chrono::seconds{number}};
    result.pool = kPool;
    result.nodes = std::move(nodes);
    result.datasets = std::move(datasets);
    return result;
}

inline AllocationView view(Bytes capacity, std::vector<Demand> demands) {
    AllocationView result;
    result.nodes = {{kPool, "n1", capacity}, {kPool, "n2", capacity}};
    result.demands = std::move(demands);
    return result;
}

inline Bytes granted(const AllocationPlan& plan, const std::string& node, const std::string& uid) {
    for (const Grant& grant : plan.grants) {
        if (grant.node == node && grant.dataset_uid == uid) {
            return grant.resident_bytes;
        }
    }
    ADD_FAILURE() << "no grant for " << uid << " on " << node;
    return {};
}

inline double to_gib(Bytes bytes) {
    return static_cast<double>(bytes.count()) / static_cast<double>(gib(1).count());
}

inline const JobAllocation& allocation(const AllocationPlan& plan, const std::string& name) {
    for (const JobAllocation& job : plan.jobs) {
        if (job.job.name == name) {
            return job;
        }
    }
    throw std::runtime_error("no allocation for " + name);
}

inline Demand waiting(Demand job, double ingest) {
    job.rates = JobRates{ingest, 0, 1, false};
    return job;
}

}  // namespace stoker::control
