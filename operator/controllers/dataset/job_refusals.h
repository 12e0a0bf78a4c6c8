#pragma once

#include <map>
#include <optional>
#include <string>

#include "common/base/clock.h"
#include "common/base/error.h"
#include "common/base/guarded.h"
#include "common/base/result.h"
#include "operator/core/sweep/plan_fillers.h"
#include "operator/kube/client.h"

namespace stoker::control {

// The API server's refusals to create a Dataset's Jobs: their messages, and when to try again. A
// Job is named by its place; a Dataset with one Job uses an empty place. Thread-safe.
class JobRefusals {
public:
    // Retry interval after the first refusal: no event reports that a quota has grown.
    static constexpr Duration kTryAgain = std::chrono::seconds{30};

    // The interval doubles after each refusal, up to `wait_most`.
    JobRefusals(const Clock& clock, Duration wait_most)
        : clock_(clock),
          wait_most_(wait_most) {}

    // Time until the Job may be created again; nullopt: now.
    std::optional<Duration> wait(const ObjectKey& dataset, const FillerPlace& place);

    // Notes why a Job could not be created. Returns when to look again. Errors that an immediate
    // retry may cure are returned.
    Result<std::optional<Duration>> note(
        const ObjectKey& dataset, const FillerPlace& place, const Error& error);

    // The refusals' messages. Empty: the name was taken, possibly by our own Job.
    FillerDiagnoses words(const ObjectKey& dataset);

    void forget(const ObjectKey& dataset, const FillerPlace& place);
    void forget(const ObjectKey& dataset);

private:
    struct Refusal {
        std::string words;
        TimePoint at{};
        Duration wait{};
    };

    const Clock& clock_;
    Duration wait_most_;
    Guarded<std::map<ObjectKey, std::map<FillerPlace, Refusal>>> refusals_;  // by Dataset
};

// Deletes the Job of that uid; its pods are gone before a Job of the same name can be created. No
// error if the name belongs to another Job: the next round handles it.
Status remove_job(ApiClient& client, const ObjectKey& job, const std::string& uid);

}  // namespace stoker::control
