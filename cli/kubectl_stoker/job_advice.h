#pragma once

#include <optional>
#include <string>
#include <vector>

#include "operator/api/training_job.h"
#include "operator/core/allocation/explain_job.h"
#include "operator/core/profile/job_profile.h"

namespace stoker::cli {

// Input of `advise tj/NAME`. If the demand and its explanation are missing (no right to ask the
// operator, or the job has ended), the advice uses the status.
struct JobAdviceFacts {
    control::TrainingJob job;
    std::optional<control::Demand> demand;
    std::optional<control::JobExplanation> explanation;
};

// An epoch of a running job with a cache of one size.
struct JobAdviceSize {
    Bytes size{};  // over all nodes of the job
    double share = 0;
    Bytes origin{};
    double epoch_seconds = 0;
};

// A contract's bytes from the origin in an epoch, with the recommended size.
struct JobAdviceContract {
    std::string name;
    Bytes origin{};
    std::string reason;
};

struct JobAdvice {
    control::ObjectKey job;
    std::string source;   // "operator" or "status"
    Bytes everything{};   // bytes that can be cached, over all nodes of the job
    Bytes epoch_bytes{};  // bytes that all ranks read under the job's contract
    control::JobProfile profile;
    bool is_worth_it = false;
    std::string reason;
    std::vector<JobAdviceSize> curve;  // ascending: 0 to 1 of everything
    std::size_t recommended = 0;       // index in `curve`
    std::vector<JobAdviceContract> contracts;
};

// Uses the operator's measurements and the planner's curve of the job, else the status, as if each
// epoch read every sample once (`value_of()`). Other contracts: the planner's miss curves with
// default parameters. kNotFound: nothing is measured yet; the message says what to do. Pure.
Result<JobAdvice> advise_job(const JobAdviceFacts& facts);

std::string job_advice_text(const JobAdvice& advice);
std::string job_advice_json(const JobAdvice& advice);

}  // namespace stoker::cli
