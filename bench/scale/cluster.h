#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "bench/scale/fake_api.h"

namespace stoker::bench {

struct ClusterSize {
    std::size_t jobs = 10'000;
    std::size_t pods = 50'000;  // a multiple of jobs
    std::size_t nodes = 1000;
    std::size_t streams = 10'000;  // sidecars of ranks 0 that report; at most one per job
    std::size_t namespaces = 100;
    std::size_t datasets = 2000;  // a multiple of namespaces
};

// A running TrainingJob, and where its rank 0 runs.
struct PlacedJob {
    std::string ns;
    std::string name;
    std::string uid;
    std::string dataset_uid;
    std::string pod;  // of rank 0
    std::string pod_uid;
    std::string node;
};

// Fills `api` with one pool on all nodes, a quota in each namespace, and running jobs with their
// Jobs, Services and pods (6 KB each, as a real API server sends them). Returns the jobs.
std::vector<PlacedJob> fill_cluster(FakeApi& api, const ClusterSize& size);

// Creates a TrainingJob of one rank, as a user does.
void add_new_job(FakeApi& api, std::size_t number, const ClusterSize& size);

}  // namespace stoker::bench
