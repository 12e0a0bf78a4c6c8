#include "operator/core/status/summarize_training_job.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "common/base/saturating.h"
#include "operator/core/lifecycle/attempts.h"
#include "operator/core/lifecycle/pin_revisions.h"
#include "operator/core/spec/make_condition.h"
#include "operator/core/status/guest_status.h"
#include "operator/core/status/judge_cache.h"
#include "operator/core/status/judge_losses.h"
#include "operator/core/status/judge_placement.h"
#include "operator/core/status/summarize_profile.h"
#include "operator/core/view/forecast.h"
#include "operator/core/view/totals.h"

namespace stoker::control {

namespace {

using std::chrono::seconds;

// Reason of conditions that no longer matter because the job has ended.
constexpr std::string_view kFinished = "Finished";

// The condition DataReady for one dataset, by the sidecars' reports. `hint` is appended to the
// message of an origin that refuses.
Condition judge_dataset(
    const ResolvedDataset& dataset, const DatasetTotals* sum, const std::string& hint) {
    if (sum == nullptr || sum->state == ManifestState::kUnknown) {
        return dataset.total ? holds("Listed", "")
                             : unknown(
                                   "NotListed",
                                   fmt::format("No sidecar lists dataset {} yet.", dataset.name));
    }
    if (sum->state == ManifestState::kFailed) {
        return fails(
            "OriginFailed",
            fmt::format("Dataset {} cannot be listed: {}{}", dataset.name, sum->error, hint));
    }
    if (sum->state == ManifestState::kListing) {
        return unknown(
            "Listing",
            fmt::format(
                "Dataset {} is being listed: {} objects so far.",
                dataset.name,
                sum->objects_listed));
    }
    if (!sum->error.empty()) {
        return holds(
            "Listed",
            fmt::format(
                "Dataset {} is listed; the last fetch failed: {}{}",
                dataset.name,
                sum->error,
                hint));
    }
    return holds("Listed", "");
}

// DataReady for all datasets.
Condition judge_datasets(const TrainingJobView& view, const Totals& sum) {
    Condition worst = holds("Listed", "Every dataset is listed.");
    for (const ResolvedDataset& dataset : view.datasets.datasets) {
        const auto found = sum.datasets.find(dataset.uid);
        const DatasetTotals* told = found == sum.datasets.end() ? nullptr : &found->second;
        Condition next =
            waits_for_owner(view, dataset, told)
                ? wait_for_owner(view, dataset, *told)
                : judge_dataset(dataset, told, tell_credentials(dataset, view.job.meta.ns));
        if (next.status == ConditionStatus::kFalse) {
            return next;
        }
        const bool is_worse = next.status == ConditionStatus::kUnknown || !next.message.empty();
        if (is_worse && worst.status == ConditionStatus::kTrue) {
            worst = std::move(next);
        }
    }
    return worst;
}

Condition judge_data(
    const TrainingJobView& view, const Lifecycle& lifecycle, const Totals& sum, const Moment& now) {
    const Blocker& blocker = view.datasets.blocker;
    if (!blocker.empty() && !view.datasets.goes_on) {
        return fails(blocker.reason, blocker.message);
    }
    if (view.pool.name.empty()) {
        return unknown("NoSidecar", "The job has no cache, so there are no reports on its data.");
    }
    if (is_silent(view, lifecycle, sum, now)) {
        return silent();
    }
    Condition result = judge_datasets(view, sum);
    if (!blocker.empty()) {
        result.message += " The attempt goes on, but another could not start: " + blocker.message;
    }
    return result;
}

// Mean origin bytes/s since the last status; the last rate if less than a second has passed.
std::int64_t origin_rate(
    const std::optional<CacheStatus>& before, const Totals& sum, const Lifecycle& lifecycle) {
    if (is_final(lifecycle.state) || !before || !before->sampled_at || !sum.newest) {
        return 0;
    }
    const std::int64_t fetched =
        subtract_saturated(count_of(sum.origin_bytes), before->origin_bytes);
    const auto elapsed =
        std::chrono::floor<seconds>(elapsed_between(*before->sampled_at, *sum.newest)).count();
    if (fetched < 0 || elapsed < 1) {
        return before->origin_bytes_per_second;
    }
    return fetched / elapsed;
}

// Whether the job's grants are over: it does not read, and all its pods are gone.
bool holds_nothing(const TrainingJobView& view, const Lifecycle& lifecycle) {
    return !is_final(lifecycle.state) && !reads_now(lifecycle.state) &&
           std::ranges::all_of(view.pods, [](const Pod& pod) { return has_ended(pod); });
}

CacheStatus measure_cache(
    const TrainingJobView& view, const Lifecycle& lifecycle, const Totals& sum) {
    const std::optional<CacheStatus>& before = view.job.status.cache;
    CacheStatus result = before.value_or(CacheStatus{});
    result.pool = view.pool.name;
    if (view.allocation) {
        result.wanted_bytes = count_of(view.allocation->wanted);
        result.allocated_bytes = count_of(view.allocation->granted);
        result.borrowed_bytes = count_of(view.allocation->borrowed);
    } else if (holds_nothing(view, lifecycle)) {
        result.allocated_bytes = 0;
        result.borrowed_bytes = 0;
    }
    result.origin_bytes_per_second = origin_rate(before, sum, lifecycle);
    if (!sum.newest) {
        return result;
    }
    if (sum.fresh_reports > 0) {
        Bytes used{};
        for (const auto& [uid, dataset] : sum.datasets) {
            used += resident_bytes(view, uid, dataset);
        }
        result.used_bytes = count_of(used);
    }
    result.cache_bytes = count_of(sum.cache_bytes);
    result.origin_bytes = count_of(sum.origin_bytes);
    if (const auto percent = hit_percent(sum.cache_bytes, sum.origin_bytes)) {
        result.hit_ratio = ratio_text(*percent);
    }
    result.sampled_at = std::chrono::floor<seconds>(*sum.newest);
    return result;
}

ProgressStatus measure_progress(
    const std::optional<ProgressStatus>& before,
    const Totals& sum,
    const std::optional<CacheStatus>& cache_before) {
    ProgressStatus result;
    result.epoch = count_of(sum.epoch);
    result.samples_read = count_of(sum.epoch_position);
    const auto all = count_of(sum.epoch_samples);
    if (all > 0) {
        result.percentage =
            std::min<std::int64_t>(multiply_saturated(result.samples_read, 100) / all, 100);
    }
    if (!before || !cache_before || !cache_before->sampled_at || before->epoch != result.epoch) {
        return result;
    }
    const std::int64_t read = subtract_saturated(result.samples_read, before->samples_read);
    const auto elapsed =
        std::chrono::floor<seconds>(elapsed_between(*cache_before->sampled_at, *sum.newest))
            .count();
    if (elapsed < 1) {
        result.estimated_remaining_seconds = before->estimated_remaining_seconds;
    } else if (read > 0 && all >= result.samples_read) {
        result.estimated_remaining_seconds =
            multiply_saturated(all - result.samples_read, elapsed) / read;
    }
    return result;
}

bool makes_job(const Lifecycle& lifecycle) {
    return std::ranges::any_of(lifecycle.actions, [](const Action& action) {
        return std::holds_alternative<CreateJob>(action);
    });
}

// resolve_datasets() identifies the datasets of a running attempt by these uids.
std::vector<JobDatasetStatus> measure_datasets(
    const TrainingJobView& view, const Lifecycle& lifecycle, const Totals& sum, const Moment& now) {
    const std::vector<SidecarReport> reports = reports_of_attempt(view, lifecycle.status.attempt);
    const bool reads = reads_now(lifecycle.state);
    std::vector<JobDatasetStatus> result;
    for (std::size_t i = 0; i < view.datasets.datasets.size(); ++i) {
        const ResolvedDataset& dataset = view.datasets.datasets[i];
        JobDatasetStatus status;
        for (const JobDatasetStatus& before : view.job.status.datasets) {
            if (before.name == dataset.name) {
                status = before;
            }
        }
        status.name = dataset.name;
        status.uid = reads ? dataset.uid : "";
        if (dataset.total) {
            status.total_bytes = count_of(*dataset.total);
        }
        if (view.allocation && i < view.allocation->datasets.size()) {
            status.allocated_bytes = count_of(view.allocation->datasets[i]);
        }
        const auto found = sum.datasets.find(dataset.uid);
        if (found != sum.datasets.end() && found->second.state == ManifestState::kReady) {
            status.total_bytes = count_of(found->second.total);
            status.samples = count_of(found->second.samples);
            status.used_bytes = count_of(resident_bytes(view, dataset.uid, found->second));
        }
        if (makes_job(lifecycle)) {
            // No pod of the attempt exists: new pods list the origin again.
            forget_revision(status);
        } else {
            note_revision(dataset.uid, lifecycle.status.attempt, reports, now, status);
        }
        result.push_back(std::move(status));
    }
    return result;
}

TrainingJobColumns print_columns(const TrainingJobStatus& status) {
    TrainingJobColumns result;
    if (!status.cache) {
        return result;
    }
    const auto print = [](std::int64_t bytes) { return to_string(bytes_of(bytes)); };
    const CacheStatus& cache = *status.cache;
    result.cache = print(cache.allocated_bytes) + "/" + print(cache.wanted_bytes);
    result.origin = print(cache.origin_bytes_per_second) + "/s";
    if (cache.borrowed_bytes > 0) {
        result.borrowed = print(cache.borrowed_bytes);
    }
    if (cache.benefit) {
        result.benefit = cache.benefit->per_gib + "s";
    }
    if (!cache.hit_ratio.empty()) {
        const bool whole = cache.hit_ratio.starts_with('1');
        const std::string digits = cache.hit_ratio.substr(2);
        result.hit = (whole ? "100" : digits.starts_with('0') ? digits.substr(1) : digits) + "%";
    }
    return result;
}

void measure(
    const TrainingJobView& view,
    const Lifecycle& lifecycle,
    const Totals& sum,
    const Moment& now,
    TrainingJobStatus& status) {
    if (!view.pool.name.empty()) {
        status.cache = measure_cache(view, lifecycle, sum);
    } else if (status.cache && !is_final(lifecycle.state)) {
        status.cache->allocated_bytes = 0;
        status.cache->borrowed_bytes = 0;
    }
    if (sum.newest) {
        status.progress = measure_progress(view.job.status.progress, sum, view.job.status.cache);
    }
    if (status.progress && is_final(lifecycle.state)) {
        status.progress->estimated_remaining_seconds.reset();
    }
    status.datasets = measure_datasets(view, lifecycle, sum, now);
    if (status.cache && !is_final(lifecycle.state)) {
        summarize_profile(view, bytes_of(status.cache->used_bytes), status);
    }
    status.columns = print_columns(status);
}

// The pool that the attempt's Job uses or will use. nullopt if the Job cannot be created or is being
// deleted: the attempt's next Job may use another pool.
std::optional<AttemptPool> given_pool(const TrainingJobView& view, const Lifecycle& lifecycle) {
    const std::optional<AttemptPool>& before = view.job.status.attempt_pool;
    if (view.job.spec.workload_ref) {
        const AttemptPool now{lifecycle.status.attempt, view.pool.name};
        return holds_nothing(view, lifecycle) ? std::nullopt : std::optional(before.value_or(now));
    }
    const bool is_told = before && before->attempt == lifecycle.status.attempt;
    const Attempts attempts = find_attempts(view);
    const bool exists = attempts.current != nullptr &&
                        attempts.number == lifecycle.status.attempt &&
                        !attempts.current->meta.deleting_since;
    if (is_final(lifecycle.state) || (exists && is_told)) {
        return before;
    }
    if (exists || (makes_job(lifecycle) && view.diagnosis.words.empty())) {
        return AttemptPool{lifecycle.status.attempt, view.pool.name};
    }
    return std::nullopt;
}

std::vector<ChildJobStatus> list_jobs(const TrainingJobView& view) {
    const Attempts attempts = find_attempts(view);
    std::vector<const Job*> jobs = attempts.older;
    if (attempts.current != nullptr) {
        jobs.push_back(attempts.current);
    }
    constexpr std::size_t kCountMax = 16;
    jobs.erase(jobs.begin(), jobs.end() - std::min(jobs.size(), kCountMax));
    std::vector<ChildJobStatus> result;
    for (const Job* job : jobs) {
        result.push_back({job->meta.name, job->active, job->ready, job->succeeded, job->failed});
    }
    return result;
}

// The conditions that follow from the job's state. Each condition has its own reason and message,
// which say why it is true or false.
template <class Set>
void set_state(const Lifecycle& lifecycle, Set set) {
    const JobState state = lifecycle.state;
    const std::string word{to_string(state)};
    const std::string& message = lifecycle.message;
    const bool complete = state == JobState::kComplete;
    const bool failed = state == JobState::kFailed;
    set("Finished", holds_if(is_final(state), word, message));
    set("Complete",
        complete || failed ? holds_if(complete, word, message)
                           : fails("NotFinished", "The job has not ended."));
    set("Failed",
        failed     ? holds(lifecycle.failure, message)
        : complete ? fails("Succeeded", message)
                   : fails("NotFinished", "The job has not ended."));
    set("Running",
        is_final(state) ? fails(std::string{kFinished}, "The job has ended.")
                        : holds_if(state == JobState::kRunning, word, message));
    set("Suspended",
        is_suspended(state) ? holds(word, message)
                            : fails("NotSuspended", "The job is not suspended."));
}

// Sets a condition that not every job has. nullopt: the job has none.
template <class Set>
void set_or_drop(
    std::string_view type, std::optional<Condition> answer, Set set, TrainingJobStatus& status) {
    if (answer) {
        set(std::string{type}, *std::move(answer));
        return;
    }
    drop_condition(status.conditions, type);
}

// The last condition of this type, or `otherwise` if there is none.
Condition last_word(const TrainingJobStatus& status, const char* type, Condition otherwise) {
    const Condition* last = find_condition(status.conditions, type);
    return last == nullptr ? std::move(otherwise) : *last;
}

// A job that has ended waits for nothing more.
Condition ended(Condition last) {
    if (last.status != ConditionStatus::kUnknown || last.reason == kFinished ||
        last.reason == "NoSidecar") {
        return last;
    }
    return unknown(std::string{kFinished}, "The job has ended. Last known: " + last.message);
}

// Conditions about data and cache of a job that has ended: they keep their last values. A job that
// completed had its data.
template <class Set>
void settle(
    const TrainingJobView& view,
    const Lifecycle& lifecycle,
    const Totals& sum,
    const Moment& now,
    const TrainingJobStatus& before,
    Set set) {
    const bool heard = sum.fresh_reports > 0 && !view.datasets.datasets.empty();
    Condition data = heard ? judge_datasets(view, sum)
                           : last_word(before, "DataReady", judge_data(view, lifecycle, sum, now));
    if (lifecycle.state == JobState::kComplete && data.status == ConditionStatus::kFalse) {
        data.status = ConditionStatus::kUnknown;
    }
    set("DataReady", ended(std::move(data)));
    const Condition cache = judge_cache(view, lifecycle, sum, now);
    set("CacheAllocated", ended(last_word(before, "CacheAllocated", cache)));
    if (!view.pool.name.empty()) {
        set("Profiled", ended(last_word(before, "Profiled", judge_profile(view))));
    }
    if (const Condition* placed = find_condition(before.conditions, kClairvoyantPlacement)) {
        set(std::string{kClairvoyantPlacement}, ended(*placed));
    }
}

}  // namespace

TrainingJobStatus summarize_training_job(
    const TrainingJobView& view, const Lifecycle& lifecycle, const Moment& now) {
    TrainingJobStatus status = lifecycle.status;
    status.observed_generation = view.job.meta.generation;
    status.attempt_pool = given_pool(view, lifecycle);
    status.jobs = list_jobs(view);
    const auto set = [&](std::string type, Condition answer) {
        set_condition(status.conditions, std::move(type), std::move(answer), view.job.meta, now);
    };
    set_state(lifecycle, set);
    set_or_drop("LossesShared", judge_losses(view.job.spec, view.datasets.datasets), set, status);
    const Totals sum = total_of(reports_of_attempt(view, lifecycle.status.attempt), now);
    measure(view, lifecycle, sum, now, status);
    if (!view.pool.name.empty()) {
        set("OriginUnchanged", judge_origin(view, lifecycle, status.datasets, now));
    }
    if (is_final(lifecycle.state)) {
        settle(view, lifecycle, sum, now, view.job.status, set);
        return status;
    }
    set("DataReady", judge_data(view, lifecycle, sum, now));
    set("CacheAllocated", judge_cache(view, lifecycle, sum, now));
    if (!view.pool.name.empty()) {
        set("Profiled", judge_profile(view));
    }
    set_or_drop(
        kClairvoyantPlacement, judge_placement(view, lifecycle.status.attempt), set, status);
    if (view.job.spec.cache.min_bytes.value_or(Bytes::zero()) == Bytes::zero()) {
        set_or_drop("MinimumGuaranteed", std::nullopt, set, status);
    } else if (view.allocation) {
        set("MinimumGuaranteed", judge_minimum(*view.allocation));
    }
    return status;
}

}  // namespace stoker::control
