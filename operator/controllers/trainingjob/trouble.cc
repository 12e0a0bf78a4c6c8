#include "operator/controllers/trainingjob/trouble.h"

#include <algorithm>
#include <utility>

#include <cpprest/json.h>
#include <fmt/format.h>

#include "common/log/log.h"

namespace stoker::control {

namespace {

constexpr std::size_t kWordsMax = 1024;

// The Job controller still writes core/v1 Events, and only there can they be asked for by object.
const ResourceKind kCoreEvents{"", "v1", "events", "Event", true};

std::string last_seen(const Object& event) {
    const std::string last = string_at(event.raw.value(), {"lastTimestamp"});
    return last.empty() ? string_at(event.raw.value(), {"eventTime"}) : last;
}

}  // namespace

const Job* TroubleFinder::find_barren(
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

std::string TroubleFinder::find(
    const ObjectKey& training_job, const std::vector<Job>& jobs, const std::vector<Pod>& pods) {
    const Job* barren = find_barren(jobs, pods, clock_.wall_now());
    {
        auto known = known_.lock();
        const auto entry = known->find(training_job);
        if (entry != known->end()) {
            const bool fresh = clock_.now() - entry->second.looked_at < kLookEvery;
            if (entry->second.refused ? jobs.empty() : (barren != nullptr && fresh)) {
                return entry->second.words;
            }
            if (barren == nullptr) {
                known->erase(entry);
            }
        }
    }
    if (barren == nullptr) {
        return {};
    }
    const Result<std::string> words = ask(*barren);
    if (!words) {
        log::warning(
            "cannot look for the reason why there are no pods",
            {{"object", to_string(training_job)}, {"error", words.error().message}});
    }
    auto known = known_.lock();
    (*known)[training_job] = {words.value_or(std::string{}), false, clock_.now()};
    return (*known)[training_job].words;
}

Result<std::string> TroubleFinder::ask(const Job& job) {
    Scope scope;
    scope.ns = job.meta.ns;
    scope.field_selector = fmt::format("involvedObject.uid={},reason=FailedCreate", job.meta.uid);
    STOKER_TRY(const std::vector<Object> events, client_.list(kCoreEvents, scope));
    const auto newest =
        std::max_element(events.begin(), events.end(), [](const Object& a, const Object& b) {
            return last_seen(a) < last_seen(b);
        });
    if (newest == events.end()) {
        return std::string{};
    }
    return fmt::format(
        "The pods cannot be created: {:.{}}",
        string_at(newest->raw.value(), {"message"}),
        kWordsMax);
}

bool TroubleFinder::note_refusal(const ObjectKey& training_job, const Error& error) {
    auto known = known_.lock();
    Known& entry = (*known)[training_job];
    std::string words = fmt::format("The API server refuses it: {:.{}}", error.message, kWordsMax);
    const bool news = !entry.refused || entry.words != words;
    entry = {std::move(words), true, clock_.now()};
    return news;
}

}  // namespace stoker::control
