#include "operator/core/status/summarize_profile.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "common/base/saturating.h"
#include "operator/core/view/totals.h"

namespace stoker::control {

namespace {

// Bytes that one epoch of the job reads; zero until every dataset is listed.
Bytes epoch_bytes_of(const TrainingJobView& view) {
    Bytes sum{};
    for (const ResolvedDataset& dataset : view.datasets.datasets) {
        if (!dataset.total) {
            return Bytes::zero();
        }
        sum += *dataset.total;
    }
    return sum;
}

std::int64_t rounded(double number) {
    constexpr double kMax = 9e18;
    return static_cast<std::int64_t>(std::llround(std::min(number, kMax)));
}

// Two significant digits: "840", "99", "2.7", "0.031"; never "1e+02".
std::string short_text(double number) {
    constexpr double kNothing = 1e-4;
    if (number < kNothing) {
        return "0";
    }
    return number >= 10 ? fmt::format("{:.0f}", number) : fmt::format("{:.2g}", number);
}

std::string rate_text(double bytes_per_second) {
    return to_string(Bytes{static_cast<std::uint64_t>(bytes_per_second)}) + "/s";
}

ProfileStatus status_of(const JobProfile& profile, const JobValue& value, Bytes epoch_bytes) {
    ProfileStatus result;
    if (profile.sample_bytes > 0) {
        result.samples_per_second_needed = rounded(profile.ingest_rate / profile.sample_bytes);
        result.samples_per_second_remote = rounded(profile.origin_rate / profile.sample_bytes);
    }
    result.compute_seconds_per_epoch = rounded(value.epoch_seconds_best);
    result.dataset_bytes = count_of(epoch_bytes);
    result.verdict = to_string(profile.verdict);
    result.wait_share = fmt::format("{:.2f}", profile.wait_share);
    // In tenths: confidence grows with every window, and each change costs a write.
    result.confidence = fmt::format("{:.1f}", profile.confidence);
    return result;
}

BenefitStatus benefit_of(const JobProfile& profile, const JobValue& value) {
    return {
        short_text(value.seconds_saved_per_epoch),
        short_text(value.seconds_per_gib),
        short_text(value.marginal_seconds_per_gib),
        std::string{to_string(profile.method)},
        short_text(value.gpu_seconds_saved_per_gib_hour),
        short_text(value.benefit)};
}

}  // namespace

std::optional<JobValue> value_of_job(const TrainingJobView& view, Bytes cached) {
    const Bytes epoch_bytes = epoch_bytes_of(view);
    if (!view.profile || epoch_bytes == Bytes::zero()) {
        return std::nullopt;
    }
    const TrainerSpec& trainer = view.job.spec.trainer;
    const auto nodes = static_cast<std::uint64_t>(trainer.node_count);
    const auto gpus = static_cast<std::uint32_t>(std::min<std::int64_t>(
        multiply_saturated(gpus_per_node(trainer), trainer.node_count),
        std::numeric_limits<std::uint32_t>::max()));
    return value_of({*view.profile, epoch_bytes, epoch_bytes * nodes, cached, std::max(gpus, 1U)});
}

void summarize_profile(const TrainingJobView& view, Bytes cached, TrainingJobStatus& status) {
    if (!view.profile) {
        return;
    }
    const std::optional<JobValue> value = value_of_job(view, cached);
    status.profile = status_of(*view.profile, value.value_or(JobValue{}), epoch_bytes_of(view));
    if (value && status.cache && value->epoch_seconds_with > 0) {
        status.cache->benefit = benefit_of(*view.profile, *value);
    }
}

Condition judge_profile(const TrainingJobView& view) {
    const Condition* before = find_condition(view.job.status.conditions, "Profiled");
    if (!view.profile) {
        const bool stands = before != nullptr && before->status == ConditionStatus::kTrue;
        return stands
                   ? *before
                   : unknown("Profiling", "Not enough has been read to tell what the job needs.");
    }
    const JobProfile& profile = *view.profile;
    const std::string needs = fmt::format(
        "The job would read {} if data were never late", rate_text(profile.ingest_rate));
    if (profile.origin_rate <= 0) {
        return unknown("Profiling", needs + "; it has read nothing from the origin yet.");
    }
    const std::string all = fmt::format(
        "{}; the origin gives {}{}.",
        needs,
        profile.origin_rate_is_bound ? "at least " : "",
        rate_text(profile.origin_rate));
    const bool known = profile.verdict != ProfileVerdict::kUnknown;
    return known ? holds(std::string{to_string(profile.verdict)}, all) : unknown("Profiling", all);
}

}  // namespace stoker::control
