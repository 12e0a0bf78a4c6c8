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

// Everything that a scenario names, made and connected. Members are in the order in which they
// depend on each other.
struct Assembly {
    std::vector<std::uint64_t> sizes;
    Outcome outcome;                              // without its jobs
    OdsCache* ods = nullptr;                      // the node's policy, where it is this one
    std::vector<std::unique_ptr<Losses>> losses;  // of jobs that report them
    std::unique_ptr<VirtualNode> node;
    std::vector<std::unique_ptr<sidecar::Sampler>> orders;  // of jobs that choose their own
    std::deque<JobRun> jobs;
};

// `scenario` must have passed check_scenario() and outlive the parts. The parts hold on to each other, so they do not
// move.
std::unique_ptr<Assembly> assemble(const Scenario& scenario);

// Payload sizes by sample; log-normal ones have the mean that is asked for.
std::vector<std::uint64_t> sizes_of(const DatasetSpec& dataset, std::uint64_t seed);

}  // namespace stoker::simulate
