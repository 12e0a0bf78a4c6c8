#pragma once

#include <optional>
#include <string>
#include <vector>

#include "operator/api/training_job.h"

namespace stoker::cli {

// One line of `top`, from the job's status alone. An empty optional: not known yet.
struct TopRow {
    control::ObjectKey job;
    std::string state;  // "Running"
    std::int64_t gpus = 0;
    std::optional<double> saved_per_hour;  // GPU-seconds (1 for a job without GPUs) in an hour
    std::optional<double> speedup;         // epoch time without cache / with cache
    std::string cache;                     // "310Gi/620Gi"
    std::string hit;                       // "62%"
    std::string origin;                    // "412Mi/s"
    std::string wait;  // share of the trainers' time spent waiting for data: "35%"
    std::string
        reason;  // of the condition CacheAllocated; `top` prints `state` for a job that is not running
};

// Jobs that have not ended, by saved_per_hour (highest first), then by name. Pure.
std::vector<TopRow> top_rows(const std::vector<control::TrainingJob>& jobs);

std::string top_text(const std::vector<TopRow>& rows, bool with_namespace);
std::string top_json(const std::vector<TopRow>& rows);

}  // namespace stoker::cli
