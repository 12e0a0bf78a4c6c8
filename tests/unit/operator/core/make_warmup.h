#pragma once

#include <cstdint>

#include "operator/api/dataset_warmup.h"
#include "tests/unit/operator/core/make_training_job.h"

// A DatasetWarmup of team/imagenet that fills n1 and n2.
namespace stoker::control {

inline DatasetWarmup make_warmup() {
    DatasetWarmup warmup;
    warmup.meta.ns = "team";
    warmup.meta.name = "warm";
    warmup.meta.uid = "uid-warm";
    warmup.meta.generation = 1;
    warmup.spec.dataset_ref = "imagenet";
    warmup.status.pool = "nvme";
    warmup.status.start_time = wall(0);
    for (const char* node : {"n1", "n2"}) {
        WarmupNodeStatus& status = warmup.status.nodes.emplace_back();
        status.node = node;
        status.state = kWarmupNodeFilling;
    }
    return warmup;
}

// A leader's report: its node owns 500 samples (2 GiB), half of the dataset, and has stored 250.
inline SidecarReport make_fill_report(std::int64_t rank, std::int64_t second) {
    SidecarReport report = make_report(make_running_view(), rank, second);
    report.datasets[0].fill = FillProgress{500, gib(2), 250, gib(1), 0, false, false};
    return report;
}

}  // namespace stoker::control
