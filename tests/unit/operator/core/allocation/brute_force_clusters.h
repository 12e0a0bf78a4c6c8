#pragma once

#include <cstdint>
#include <string>

#include "common/base/prng.h"
#include "operator/core/allocation/allocation_view.h"

// The random clusters of decide_pool_test.cc.
namespace stoker::control {

inline constexpr const char* kBruteForcePool = "p";
inline constexpr double kBytesOfGib = 1024.0 * 1024 * 1024;

struct Shape {
    bool borrowing = false;
    bool sharing_across_namespaces = false;
    Objective objective = Objective::kThroughput;
};

inline Demand random_job(
    Prng& prng, std::uint64_t number, std::uint64_t nodes, const Shape& shape) {
    Demand job;
    const std::string ns = "ns" + std::to_string(prng.below(3));
    job.job = {ns, "job" + std::to_string(number)};
    job.pool = kBruteForcePool;
    const std::uint64_t file = prng.below(6);
    // Sizes follow from names, so that jobs agree on the size of a shared dataset.
    DemandDataset dataset;
    dataset.name = "train";
    dataset.uid = (shape.sharing_across_namespaces ? "" : ns + "-") + std::to_string(file);
    dataset.ns = shape.sharing_across_namespaces ? "ns" + std::to_string(file % 3) : "";
    dataset.total = Bytes{1 + file};
    if (prng.below(3) == 0) {
        dataset.access.kind = AccessKind::kImportance;
        dataset.access.beta = 2 * prng.unit();
    }
    dataset.sample_bytes = static_cast<double>(file);
    job.datasets = {dataset};
    for (std::uint64_t node = 0; node < nodes; ++node) {
        if (prng.below(3) != 0) {
            job.nodes.push_back("n" + std::to_string(node));
        }
    }
    JobRates rates;
    rates.ingest = 1 + 99 * prng.unit();
    rates.origin = prng.below(2) == 0 ? rates.ingest * prng.unit() : 0;
    rates.compute_bound = prng.below(8) == 0;
    job.rates = rates;
    job.weight = prng.below(4) == 0 ? 3 : 1;
    job.min_bytes = Bytes{prng.below(6) == 0 ? prng.below(4) : 0} * job.nodes.size();
    if (prng.below(5) == 0) {
        job.max_bytes = Bytes{1 + prng.below(4)} * job.nodes.size();
    }
    return job;
}

inline AllocationView random_view(std::uint64_t seed, const Shape& shape) {
    Prng prng{seed};
    AllocationView view;
    const std::uint64_t nodes = 1 + prng.below(3);
    for (std::uint64_t node = 0; node < nodes; ++node) {
        view.nodes.push_back({kBruteForcePool, "n" + std::to_string(node), Bytes{prng.below(6)}});
    }
    for (std::uint64_t ns = 0; ns < 3; ++ns) {
        if (prng.below(3) != 0) {
            QuotaView quota{"ns" + std::to_string(ns), kBruteForcePool, Bytes{prng.below(9)}};
            if (shape.borrowing) {
                quota.borrowing = Bytes{prng.below(6)};
                quota.lending = Bytes{prng.below(9)};
                quota.weight = prng.below(3) == 0 ? 2 : 1;
            }
            view.quotas.push_back(quota);
        }
    }
    const std::uint64_t jobs = 1 + prng.below(4);
    for (std::uint64_t job = 0; job < jobs; ++job) {
        view.demands.push_back(random_job(prng, job, nodes, shape));
    }
    PoolView pool;
    pool.pool = kBruteForcePool;
    pool.objective = shape.objective;
    pool.origin_bytes_per_second = prng.below(2) == 0 ? static_cast<double>(prng.below(300)) : 0;
    pool.price_per_gib = kBytesOfGib * static_cast<double>(1 + prng.below(3));
    pool.price_per_request = prng.below(2) == 0 ? 4 * prng.unit() : 0;
    if (prng.below(3) == 0) {
        pool.default_quota = {Bytes{prng.below(9)}, Bytes{prng.below(6)}, Bytes{prng.below(9)}};
    }
    view.pools = {pool};
    return view;
}

}  // namespace stoker::control
