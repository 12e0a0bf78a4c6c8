#include "operator/core/sweep/plan_fillers.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/base/saturating.h"
#include "operator/api/time_format.h"
#include "operator/core/workload/build_job.h"

namespace stoker::control {

namespace {

// nullopt if the annotation is missing, malformed, or further in the future than clocks drift.
std::optional<WallTime> idle_since(const Job& job, WallTime now) {
    const Result<WallTime> since =
        parse_time(value_or_empty(job.meta.annotations, std::string{kIdleSinceAnnotation}));
    return since && *since <= now + kFillerGrace ? std::optional(*since) : std::nullopt;
}

class Planner {
public:
    Planner(const FillerView& view, WallTime now)
        : view_(view),
          now_(now) {}

    FillerPlan plan() {
        std::vector<const Job*> jobs;
        for (const Job& job : view_.jobs) {
            if (owns(view_.dataset.meta, job.meta)) {
                jobs.push_back(&job);
            }
        }
        std::ranges::sort(jobs, {}, [](const Job* job) { return job->meta.name; });
        for (const Job* job : jobs) {
            settle(*job);
        }
        for (const auto& [place, digest] : view_.needed) {
            if (!taken_.contains(place) && !view_.dataset.meta.deleting_since) {
                plan_.create.push_back(place);
            }
        }
        return std::move(plan_);
    }

private:
    void settle(const Job& job) {
        const FillerPlace place = place_of(job.meta);
        const bool is_first = taken_.insert(place).second;
        if (job.meta.deleting_since) {
            return;
        }
        if (job.end || !is_first) {
            remove(job);
            return;
        }
        const auto needed = view_.needed.find(place);
        if (needed == view_.needed.end()) {
            settle_idle(job);
        } else if (
            needed->second !=
            value_or_empty(job.meta.annotations, std::string{kDigestAnnotation})) {
            remove(job);
        } else if (
            job.meta.annotations.contains(std::string{kIdleSinceAnnotation}) || is_silent(place) ||
            is_too_old(job, place)) {
            remove(job);
        } else {
            settle_needed(job);
        }
    }

    void settle_idle(const Job& job) {
        const std::optional<WallTime> since = idle_since(job, now_);
        if (!since) {
            // Rounds up to whole seconds, so that the grace period is not cut short.
            plan_.mark.push_back({key_of(job), std::chrono::ceil<std::chrono::seconds>(now_)});
            look_in(kFillerGrace);
        } else if (now_ - *since >= kFillerGrace) {
            remove(job);
        } else {
            look_in(kFillerGrace - (now_ - *since));
        }
    }

    void settle_needed(const Job& job) {
        const auto age = std::chrono::floor<std::chrono::seconds>(
                             now_ - job.start_time.value_or(job.meta.created_at))
                             .count();
        if (job.active_deadline_seconds &&
            subtract_saturated(*job.active_deadline_seconds, age) < kFillerLeaseSeconds / 2) {
            plan_.renew.push_back(
                {key_of(job), std::max<std::int64_t>(age, 0) + kFillerLeaseSeconds});
        }
        look_in(std::chrono::seconds{kFillerLeaseSeconds / 4});
    }

    bool is_silent(const FillerPlace& place) {
        const auto silent = view_.silent.find(place);
        if (silent == view_.silent.end()) {
            return false;
        }
        look_in(std::max(kFillerSilenceMax - silent->second, Duration{std::chrono::seconds{1}}));
        return silent->second >= kFillerSilenceMax;
    }

    [[nodiscard]] bool is_too_old(const Job& job, const FillerPlace& place) const {
        const auto run = view_.runs.find(place);
        return run != view_.runs.end() && !is_made_for(job.meta, run->second, now_);
    }

    static FillerJob key_of(const Job& job) { return {job.meta.name, job.meta.uid}; }

    void remove(const Job& job) { plan_.remove.push_back(key_of(job)); }

    void look_in(Duration wait) {
        plan_.look_again = std::min(plan_.look_again.value_or(wait), wait);
    }

    const FillerView& view_;
    WallTime now_;
    std::set<FillerPlace> taken_;
    FillerPlan plan_;
};

// By place: the newest pod that has not ended.
std::map<FillerPlace, const Pod*> live_pods(const std::vector<Pod>& pods) {
    std::map<FillerPlace, const Pod*> result;
    for (const Pod& pod : pods) {
        if (has_ended(pod)) {
            continue;
        }
        const Pod*& best = result[place_of(pod.meta)];
        best = best == nullptr || best->meta.created_at < pod.meta.created_at ? &pod : best;
    }
    return result;
}

std::map<FillerPlace, const Job*> own_jobs(const FillerView& view) {
    std::map<FillerPlace, const Job*> result;
    for (const Job& job : view.jobs) {
        if (owns(view.dataset.meta, job.meta)) {
            result.emplace(place_of(job.meta), &job);
        }
    }
    return result;
}

std::string describe(const Pod& pod) {
    const ContainerState& sidecar = pod.sidecar;
    if (!pod.unschedulable_message.empty()) {
        return fmt::format("pod {} is not scheduled: {}", pod.meta.name, pod.unschedulable_message);
    }
    const std::string& reason =
        sidecar.waiting_reason.empty() ? sidecar.reason : sidecar.waiting_reason;
    if (!reason.empty()) {
        return fmt::format(
            "pod {} waits: {}{}{}",
            pod.meta.name,
            reason,
            sidecar.message.empty() ? "" : ": ",
            sidecar.message);
    }
    return fmt::format(
        "pod {} {}", pod.meta.name, pod.phase == PodPhase::kRunning ? "starts" : "is pending");
}

const std::string* find_words(const FillerDiagnoses& troubles, const FillerPlace& place) {
    const auto found = troubles.find(place);
    return found == troubles.end() || found->second.empty() ? nullptr : &found->second;
}

// `pod` and `trouble`: null if there is none.
FillerState judge_job(const Job& job, const Pod* pod, const std::string* trouble) {
    FillerState state;
    if (job.suspend) {
        state.refused = true;
        state.words = fmt::format("somebody has suspended its Job {}", job.meta.name);
    } else if (pod != nullptr && pod->ready) {
        state.ready = true;
    } else if (trouble != nullptr) {
        state.refused = pod == nullptr;
        state.words = *trouble;
    } else {
        state.words = pod != nullptr ? describe(*pod) : "its Job has no pod yet";
    }
    return state;
}

}  // namespace

std::set<FillerPlace> guest_places(const Dataset& dataset, const std::vector<JobUse>& users) {
    std::set<FillerPlace> places;
    for (const JobUse& use : users) {
        if (use.filler || use.pool.name.empty() || use.job->meta.ns == dataset.meta.ns ||
            !has_dataset(use.datasets, dataset.meta.uid)) {
            continue;
        }
        for (const std::string& node : use.live_nodes()) {
            places.insert({use.pool.name, node});
        }
    }
    return places;
}

bool is_made_for(const ObjectMeta& filler, WallTime run, WallTime now) {
    const Result<WallTime> made =
        parse_time(value_or_empty(filler.annotations, std::string{kFillerRunAnnotation}));
    return made && (*made == run || (*made > run && *made <= now + kFillerGrace));
}

FillerPlan plan_fillers(const FillerView& view, WallTime now) {
    return Planner{view, now}.plan();
}

std::vector<FillerState> find_filler_states(
    const FillerView& view,
    const std::vector<Pod>& pods,
    const FillerDiagnoses& refusals,
    const FillerDiagnoses& troubles) {
    const std::map<FillerPlace, const Job*> jobs = own_jobs(view);
    const std::map<FillerPlace, const Pod*> live = live_pods(pods);
    std::vector<FillerState> result;
    for (const auto& [place, digest] : view.needed) {
        const auto job = jobs.find(place);
        const auto pod = live.find(place);
        FillerState state;
        if (job == jobs.end()) {
            const std::string* refusal = find_words(refusals, place);
            state.refused = refusal != nullptr;
            state.words = refusal != nullptr ? *refusal : "its Job is being created";
        } else {
            state = judge_job(
                *job->second,
                pod == live.end() ? nullptr : pod->second,
                find_words(troubles, place));
        }
        state.place = place;
        result.push_back(std::move(state));
    }
    return result;
}

std::optional<Condition> judge_fillers(const std::vector<FillerState>& states) {
    constexpr std::size_t kToldMax = 3;
    if (states.empty()) {
        return std::nullopt;
    }
    std::size_t waiting = 0;
    bool refused = false;
    std::vector<std::string> told;
    for (const FillerState& state : states) {
        waiting += state.ready ? 0 : 1;
        refused = refused || state.refused;
        if (!state.ready && told.size() < kToldMax) {
            told.push_back(fmt::format("node {}: {}", state.place.node, state.words));
        }
    }
    if (waiting == 0) {
        return holds("Serving", fmt::format("Fillers that serve the dataset: {}.", states.size()));
    }
    return fails(
        refused ? "Refused" : "Starting",
        fmt::format(
            "{} of {} fillers are not ready: {}{}",
            waiting,
            states.size(),
            fmt::join(told, "; "),
            waiting > kToldMax ? "; and more" : ""));
}

}  // namespace stoker::control
