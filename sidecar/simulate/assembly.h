#pragma once

#include <memory>
#include <vector>

#include "common/base/result.h"
#include "sidecar/core/eviction/aggregated_importance.h"
#include "sidecar/core/eviction/eviction_policy.h"
#include "sidecar/core/sampling/sampler.h"
#include "sidecar/core/sampling/windowed_scan.h"
#include "sidecar/simulate/job_run.h"
#include "sidecar/simulate/losses.h"
#include "sidecar/simulate/node_model.h"
#include "sidecar/simulate/scenario.h"

namespace stoker::simulate {

struct JobParts {
    std::unique_ptr<sidecar::Sampler> sampler;
    std::unique_ptr<Losses> losses;  // null: the contract does not listen to any
    std::uint32_t foresight = 0;     // samples that are fetched before they are drawn
    std::uint32_t plan = 0;          // draws that the node is told of before they are drawn
    bool reads_all = false;          // each sample exactly once an epoch
};

// Everything that a scenario names, made and connected. Members are in the order in which they
// depend on each other.
struct Assembly {
    std::vector<std::uint64_t> sizes;
    Bytes dataset_bytes{};
    Bytes resident_bytes{};
    Bytes window_bytes{};
    std::unique_ptr<sidecar::AggregatedImportance> importance;  // null without such jobs
    std::unique_ptr<sidecar::EvictionPolicy> policy;
    BackgroundWork* background = nullptr;       // the policy, where it works in the background
    std::unique_ptr<sidecar::SharedScan> scan;  // of the windowed jobs; null without any
    std::vector<JobParts> jobs;
    std::unique_ptr<PolicyFeed> feed;  // may be null
};

// `scenario` must have passed check_scenario(). The parts hold on to each other, so they do not
// move.
Result<std::unique_ptr<Assembly>> assemble(const Scenario& scenario);

// Payload sizes by sample; log-normal ones have the mean that is asked for.
std::vector<std::uint64_t> sizes_of(const DatasetSpec& dataset, std::uint64_t seed);

}  // namespace stoker::simulate
