// stoker-bench-plan      what one decision of the operator costs on a large cluster
//
// Plans a thousand jobs of a hundred namespaces on a thousand nodes, first for empty nodes and then
// after that plan was carried out, for three random clusters. Prints one JSON object per cluster:
// `plan_seconds` (this thread's processor time for the slower plan) and `plan_mib` (the process's
// peak resident memory).
#include <algorithm>
#include <cstdint>
#include <ctime>

#include <fmt/core.h>
#include <sys/resource.h>

#include "operator/core/allocation/plan_allocation.h"
#include "tests/support/large_cluster.h"

namespace stoker::bench {

namespace {

constexpr std::uint64_t kClusters = 3;

// Processor time of this thread; excludes other programs on the machine.
double cpu_seconds() {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

double seconds_for(const control::AllocationView& view, control::AllocationPlan& plan) {
    const double begin = cpu_seconds();
    plan = control::plan_allocation(view);
    return cpu_seconds() - begin;
}

void run(std::uint64_t seed) {
    control::AllocationView view = control::large_cluster(seed);
    control::AllocationPlan plan;
    const double first = seconds_for(view, plan);
    for (const control::Grant& grant : plan.grants) {
        view.holdings.push_back(
            {view.nodes.front().pool,
             grant.node,
             grant.dataset_uid,
             grant.resident_bytes,
             grant.resident_bytes});
    }
    const double again = seconds_for(view, plan);
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    fmt::print(
        "{{\"plan_seconds\": {:.3f}, \"plan_mib\": {}}}\n",
        std::max(first, again),
        usage.ru_maxrss / 1024);
}

}  // namespace

}  // namespace stoker::bench

int main() {
    for (std::uint64_t seed = 1; seed <= stoker::bench::kClusters; ++seed) {
        stoker::bench::run(seed);
    }
    return 0;
}
