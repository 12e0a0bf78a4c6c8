#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/guarded.h"
#include "operator/api/job.h"
#include "operator/api/pod.h"
#include "operator/kube/client.h"

namespace stoker::control {

// What stands in the way of a job's pods that no object says: the API server refused the Job, or
// its Job controller may not make the pods (Pod Security, a ResourceQuota, a webhook), which it
// tells in Events only. Thread-safe.
class TroubleFinder {
public:
    static constexpr Duration kLookEvery = std::chrono::seconds{10};
    static constexpr Duration kPatience = std::chrono::seconds{3};  // a new Job has no pods yet

    TroubleFinder(ApiClient& client, const Clock& clock)
        : client_(client),
          clock_(clock) {}

    // One sentence, or nothing. Asks for Events only while a Job that should run has no pod, at
    // most every kLookEvery.
    std::string find(
        const ObjectKey& training_job, const std::vector<Job>& jobs, const std::vector<Pod>& pods);

    // The API server refused to make an object. True when that is news.
    bool note_refusal(const ObjectKey& training_job, const Error& error);

    // What was wanted is there.
    void clear(const ObjectKey& training_job) { known_.lock()->erase(training_job); }

    // A Job of these that should have pods and has none, long enough to wonder.
    static const Job* find_barren(
        const std::vector<Job>& jobs, const std::vector<Pod>& pods, WallTime now);

private:
    struct Known {
        std::string words;
        bool refused = false;  // by the API server, not found in Events
        TimePoint looked_at{};
    };

    Result<std::string> ask(const Job& job);

    ApiClient& client_;
    const Clock& clock_;
    Guarded<std::map<ObjectKey, Known>> known_;
};

}  // namespace stoker::control
