#pragma once

#include <utility>
#include <vector>

#include "operator/core/allocation/claim_table.h"

namespace stoker::control {

inline constexpr const char* kPool = "nvme";

inline Demand job_with_rates(double ingest, double origin) {
    Demand job;
    job.job = {"a", "job"};
    job.pool = kPool;
    job.nodes = {"n1", "n2"};
    job.datasets = {{"train", "d", Bytes{100}}};
    job.rates = JobRates{ingest, origin, 1, false};
    return job;
}

// The pool has two nodes. Each call invalidates the demands of earlier tables.
inline ClaimTable table_of(std::vector<Demand>& demands) {
    static AllocationView view;  // the tables point into it
    view = AllocationView{};
    view.nodes = {{kPool, "n1", Bytes{1000}}, {kPool, "n2", Bytes{1000}}};
    view.demands = demands;
    return make_claim_tables(view).at(kPool);
}

inline ClaimTable table_of(Demand demand) {
    std::vector<Demand> demands{std::move(demand)};
    return table_of(demands);
}

}  // namespace stoker::control
