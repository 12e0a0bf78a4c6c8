#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "sidecar/simulate/baselines/ods.h"
#include "sidecar/simulate/job_run.h"
#include "sidecar/simulate/losses.h"
#include "sidecar/simulate/scenario.h"
#include "sidecar/simulate/virtual_node.h"

namespace stoker::simulate {

// All objects of a scenario, created and connected. Members are in the order of their dependencies.
struct Assembly {
    std::vector<std::uint64_t> sizes;
    Outcome outcome;                              // without the jobs' results
    OdsCache* ods = nullptr;                      // the node's policy, if that is ODS
    std::vector<std::unique_ptr<Losses>> losses;  // of jobs that report losses
    std::unique_ptr<VirtualNode> node;
    std::vector<std::unique_ptr<sidecar::Sampler>> orders;  // of jobs that choose their own order
    std::deque<JobRun> jobs;
};

// `scenario` must have passed check_scenario() and outlive the parts. The parts refer to each
// other, so they do not move.
std::unique_ptr<Assembly> assemble(const Scenario& scenario);

// Payload sizes by sample; log-normal sizes have the specified mean.
std::vector<std::uint64_t> sizes_of(const DatasetSpec& dataset, std::uint64_t seed);

}  // namespace stoker::simulate
