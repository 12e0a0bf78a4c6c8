#pragma once

#include <cstdint>
#include <string>

#include "common/base/prng.h"
#include "operator/core/allocation/allocation_view.h"

namespace stoker::control {

inline Demand large_cluster_job(Prng& prng, int number) {
    Demand job;
    job.job = {"ns-" + std::to_string(prng.below(100)), "job-" + std::to_string(number)};
    job.pool = "nvme";
    const std::uint64_t first = prng.below(1000);
    const std::uint64_t count = 1 + prng.below(16);
    for (std::uint64_t i = 0; i < count; ++i) {
        job.nodes.push_back("node-" + std::to_string((first + i) % 1000));
    }
    DemandDataset dataset{"train", job.job.ns + "-" + std::to_string(prng.below(20)), {}};
    dataset.total = gib(50 + prng.below(3000));
    if (prng.below(3) == 0) {
        dataset.access.kind = AccessKind::kImportance;
    }
    if (prng.below(5) == 0) {
        dataset.access.kind = AccessKind::kMeasured;
        for (int i = 0; i < 1024; ++i) {
            dataset.access.sketch.push_back(static_cast<float>(prng.unit()));
        }
    }
    job.datasets = {dataset};
    const JobRates rates{1e8 + 1e9 * prng.unit(), 1e8 * prng.unit(), prng.unit(), false};
    if (prng.below(10) != 0) {
        job.rates = rates;
    }
    return job;
}

// A thousand jobs of a hundred namespaces, each on one to sixteen of a thousand nodes. Demand exceeds
// every node and most quotas.
inline AllocationView large_cluster(std::uint64_t seed) {
    constexpr const char* kPool = "nvme";
    Prng prng{seed};
    AllocationView view;
    view.step = mib(64);
    for (int node = 0; node < 1000; ++node) {
        view.nodes.push_back({kPool, "node-" + std::to_string(node), gib(1600)});
    }
    for (int ns = 0; ns < 100; ++ns) {
        QuotaView quota{"ns-" + std::to_string(ns), kPool, gib(2000 + prng.below(20'000))};
        quota.borrowing = gib(prng.below(8000));
        quota.lending = gib(prng.below(20'000));
        view.quotas.push_back(quota);
    }
    for (int number = 0; number < 1000; ++number) {
        view.demands.push_back(large_cluster_job(prng, number));
    }
    return view;
}

}  // namespace stoker::control
