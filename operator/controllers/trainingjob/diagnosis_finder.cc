#include "operator/controllers/trainingjob/diagnosis_finder.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include <cpprest/json.h>
#include <fmt/format.h>

#include "common/log/log.h"
#include "operator/core/lifecycle/refusal_words.h"

namespace stoker::control {

namespace {

constexpr std::size_t kWordsMax = 1024;

// The Job controller still writes core/v1 Events, and only those can be selected by object.
const ResourceKind kCoreEvents{"", "v1", "events", "Event", true};

std::string last_seen(const Object& event) {
    const std::string last = string_at(event.raw.value(), {"lastTimestamp"});
    return last.empty() ? string_at(event.raw.value(), {"eventTime"}) : last;
}

bool is_older(const Object& a, const Object& b) {
    return last_seen(a) < last_seen(b);
}

}  // namespace

const Job* DiagnosisFinder::find_barren(
    const std::vector<Job>& jobs, const std::vector<Pod>& pods, WallTime now) {
    for (const Job& job : jobs) {
        const bool should_run =
            !job.suspend && !job.end && !job.meta.deleting_since && job.succeeded == 0;
        const bool has_pod = std::any_of(pods.begin(), pods.end(), [&](const Pod& pod) {
            return job_name_of(pod) == job.meta.name;
        });
        if (should_run && !has_pod && now - job.meta.created_at > kPatience) {
            return &job;
        }
    }
    return nullptr;
}

const Pod* DiagnosisFinder::find_unmounted(const std::vector<Pod>& pods, WallTime now) {
    // The kubelet reports this state of a container until the volumes are mounted.
    const auto is_silent = [](const ContainerState& container) {
        return !container.started && !container.exit_code && container.restart_count == 0 &&
               (container.waiting_reason.empty() ||
                container.waiting_reason == "ContainerCreating" ||
                container.waiting_reason == "PodInitializing");
    };
    for (const Pod& pod : pods) {
        const bool waits = pod.phase == PodPhase::kPending && !pod.node_name.empty() &&
                           !pod.meta.deleting_since && is_silent(pod.sidecar) &&
                           is_silent(pod.trainer);
        if (waits && now - pod.meta.created_at > kMountPatience) {
            return &pod;
        }
    }
    return nullptr;
}

std::string DiagnosisFinder::find(
    const ObjectKey& training_job, const std::vector<Job>& jobs, const std::vector<Pod>& pods) {
    const WallTime now = clock_.wall_now();
    const Job* barren = find_barren(jobs, pods, now);
    const Pod* unmounted = barren == nullptr ? find_unmounted(pods, now) : nullptr;
    std::string subject;
    if (barren != nullptr || unmounted != nullptr) {
        subject = barren != nullptr ? barren->meta.uid : unmounted->meta.uid;
    }
    if (auto words = recall(training_job, subject, !jobs.empty())) {
        return *std::move(words);
    }
    const Result<std::string> words = barren != nullptr ? ask(*barren) : ask(*unmounted);
    if (!words) {
        log::warning(
            "cannot look for the reason why pods do not begin",
            {{"object", to_string(training_job)}, {"error", words.error().message}});
    }
    auto known = known_.lock();
    (*known)[training_job] = {words.value_or(std::string{}), false, clock_.now(), subject, false};
    return (*known)[training_job].words;
}

// The cached diagnosis while it is fresh; nullopt for an empty subject.
std::optional<std::string> DiagnosisFinder::recall(
    const ObjectKey& training_job, const std::string& subject, bool has_jobs) {
    auto known = known_.lock();
    const auto entry = known->find(training_job);
    if (entry != known->end()) {
        const bool fresh =
            entry->second.subject == subject && clock_.now() - entry->second.looked_at < kLookEvery;
        if (entry->second.refused ? !has_jobs : (!subject.empty() && fresh)) {
            return entry->second.words;
        }
        if (subject.empty()) {
            known->erase(entry);
        }
    }
    return subject.empty() ? std::optional<std::string>{std::in_place} : std::nullopt;
}

Result<std::string> DiagnosisFinder::ask(const Job& job) {
    Scope scope;
    scope.ns = job.meta.ns;
    scope.field_selector = fmt::format("involvedObject.uid={},reason=FailedCreate", job.meta.uid);
    STOKER_TRY(const std::vector<Object> events, client_.list(kCoreEvents, scope));
    const auto newest = std::max_element(events.begin(), events.end(), is_older);
    if (newest == events.end()) {
        return std::string{};
    }
    return fmt::format(
        "The pods cannot be created: {:.{}}",
        string_at(newest->raw.value(), {"message"}),
        kWordsMax);
}

Result<std::string> DiagnosisFinder::ask(const Pod& pod) {
    Scope scope;
    scope.ns = pod.meta.ns;
    scope.field_selector = fmt::format("involvedObject.uid={}", pod.meta.uid);
    STOKER_TRY(std::vector<Object> events, client_.list(kCoreEvents, scope));
    std::erase_if(events, [](const Object& event) {
        const std::string reason = string_at(event.raw.value(), {"reason"});
        return reason != "FailedMount" && reason != "FailedAttachVolume";
    });
    // "Unable to attach or mount volumes: ..." comes minutes later and only summarises other
    // events.
    const auto sums_up = [](const Object& event) {
        return string_at(event.raw.value(), {"message"}).starts_with("Unable to attach or mount");
    };
    if (!std::ranges::all_of(events, sums_up)) {
        std::erase_if(events, sums_up);
    }
    const auto newest = std::max_element(events.begin(), events.end(), is_older);
    return newest == events.end() ? std::string{}
                                  : say_unmounted(pod, string_at(newest->raw.value(), {"message"}));
}

std::string say_unmounted(const Pod& pod, const std::string& message) {
    constexpr std::string_view kOfDriver = " desc = ";
    std::string words = message;
    if (message.find(kNodeDriver) != std::string::npos &&
        message.find("not found in the list of registered CSI drivers") != std::string::npos) {
        words =
            "the node program (stoker-node) does not run there, or has not registered with the "
            "kubelet yet; check the pods of its DaemonSet";
    } else if (const std::size_t at = message.find(kOfDriver); at != std::string::npos) {
        words = message.substr(at + kOfDriver.size());
    }
    return fmt::format(
        "Pod {} waits on node {} for its volumes: {:.{}}",
        pod.meta.name,
        pod.node_name,
        words,
        kWordsMax);
}

bool DiagnosisFinder::is_invalid(const ObjectKey& training_job) {
    auto known = known_.lock();
    const auto entry = known->find(training_job);
    return entry != known->end() && entry->second.refused && entry->second.invalid;
}

bool DiagnosisFinder::note_refusal(const ObjectKey& training_job, const Error& error) {
    auto known = known_.lock();
    Known& entry = (*known)[training_job];
    std::string words = refusal_words(error.message);
    const bool news = !entry.refused || entry.words != words;
    const bool invalid = error.code == ErrorCode::kInvalidArgument;
    entry = {std::move(words), true, clock_.now(), "", invalid};
    return news;
}

}  // namespace stoker::control
