#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/base/clock.h"
#include "operator/api/document.h"
#include "operator/api/meta.h"

namespace stoker::control {

// The end of a Job, reached or imminent: a Job has FailureTarget before its last pod is gone and
// Failed afterwards.
struct JobEnd {
    bool succeeded = false;
    std::string reason;   // "BackoffLimitExceeded", "PodFailurePolicy", "DeadlineExceeded", ...
    std::string message;  // the Job controller's message
    std::optional<WallTime> at;

    bool operator==(const JobEnd&) const = default;
};

// The fields of a batch/v1 Job that the operator uses.
struct Job {
    ObjectMeta meta;
    bool suspend = false;
    std::int64_t active = 0;
    std::int64_t ready = 0;
    std::int64_t succeeded = 0;
    std::int64_t failed = 0;
    std::optional<WallTime> start_time;
    std::optional<JobEnd> end;
    std::optional<std::int64_t> active_deadline_seconds{};
    std::optional<std::int64_t> completions{};  // pods that must succeed: the number of ranks

    bool operator==(const Job&) const = default;
};

}  // namespace stoker::control
