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

// The kubelet's message about a volume of the pod, for people: the driver's error without its gRPC
// prefix, with advice if the driver is missing. Pure.
std::string say_unmounted(const Pod& pod, const std::string& message);

// Finds the problem that blocks a job's pods if no object reports it: the API server refused the
// Job, the Job controller may not create the pods (Pod Security, a ResourceQuota, a webhook), or
// the kubelet cannot mount a volume of a pod. The last two appear in Events only. Thread-safe.
class DiagnosisFinder {
public:
    static constexpr Duration kLookEvery = std::chrono::seconds{10};
    static constexpr Duration kPatience = std::chrono::seconds{3};  // a new Job has no pods yet
    static constexpr Duration kMountPatience = std::chrono::seconds{10};  // from a pod's creation

    DiagnosisFinder(ApiClient& client, const Clock& clock)
        : client_(client),
          clock_(clock) {}

    // One sentence, or an empty text. Requests Events only while a Job that should run has no pod,
    // or while a scheduled pod does not start; at most one request per kLookEvery.
    std::string find(
        const ObjectKey& training_job, const std::vector<Job>& jobs, const std::vector<Pod>& pods);

    // True if find() reports that the API server rejected the Job as invalid, so the spec must
    // change.
    bool is_invalid(const ObjectKey& training_job);

    // Notes that the API server refused to create an object. True if that is new.
    bool note_refusal(const ObjectKey& training_job, const Error& error);

    // Forgets the refusal after the object was created.
    void clear(const ObjectKey& training_job) { known_.lock()->erase(training_job); }

    // The first Job that should have pods and has had none for kPatience; else nullptr.
    static const Job* find_barren(
        const std::vector<Job>& jobs, const std::vector<Pod>& pods, WallTime now);

    // The first pod that is on a node but whose containers have neither started nor reported an
    // error for kMountPatience: its volumes are not mounted yet. Else nullptr.
    static const Pod* find_unmounted(const std::vector<Pod>& pods, WallTime now);

private:
    struct Known {
        std::string words;
        bool refused = false;  // by the API server, not found in Events
        TimePoint looked_at{};
        std::string subject;   // uid of the Job or pod whose Events were asked for
        bool invalid = false;  // refused, and repeating does not help
    };

    std::optional<std::string> recall(
        const ObjectKey& training_job, const std::string& subject, bool has_jobs);
    Result<std::string> ask(const Job& job);
    Result<std::string> ask(const Pod& pod);

    ApiClient& client_;
    const Clock& clock_;
    Guarded<std::map<ObjectKey, Known>> known_;
};

}  // namespace stoker::control
