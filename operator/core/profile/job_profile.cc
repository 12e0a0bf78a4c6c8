#include "operator/core/profile/job_profile.h"

#include <algorithm>

namespace stoker::control {

namespace {

constexpr double kGib = 1024.0 * 1024 * 1024;
constexpr double kSecondsPerHour = 3600;

double count(Bytes bytes) {
    return static_cast<double>(bytes.count());
}

// Seconds of an epoch with `cached` bytes resident.
double seconds_with(const ValueInput& input, Bytes cached) {
    const double missed =
        cached >= input.everything ? 0 : 1 - count(cached) / count(input.everything);
    const double computing = 1 / input.profile.ingest_rate;
    const double fetching = missed / input.profile.origin_rate;
    return count(input.epoch_bytes) * std::max(computing, fetching);
}

}  // namespace

std::string_view to_string(ProfileVerdict verdict) {
    switch (verdict) {
        case ProfileVerdict::kUnknown:
            return "Unknown";
        case ProfileVerdict::kComputeBound:
            return "ComputeBound";
        case ProfileVerdict::kDataBound:
            return "DataBound";
    }
    return "";
}

std::string_view to_string(ProfileMethod method) {
    switch (method) {
        case ProfileMethod::kNone:
            return "None";
        case ProfileMethod::kPredicted:
            return "Predicted";
        case ProfileMethod::kMeasured:
            return "Measured";
    }
    return "";
}

JobValue value_of(const ValueInput& input) {
    const JobProfile& profile = input.profile;
    JobValue value;
    if (profile.ingest_rate <= 0 || profile.origin_rate <= 0 ||
        input.epoch_bytes == Bytes::zero()) {
        return value;
    }
    value.epoch_seconds_best = count(input.epoch_bytes) / profile.ingest_rate;
    value.epoch_seconds_without = seconds_with(input, Bytes::zero());
    value.epoch_seconds_with = seconds_with(input, input.cached);
    if (profile.method == ProfileMethod::kMeasured && profile.measured_benefit > 0) {
        value.epoch_seconds_without = value.epoch_seconds_with * profile.measured_benefit;
    }
    value.benefit = value.epoch_seconds_without / value.epoch_seconds_with;
    value.seconds_saved_per_epoch =
        std::max(value.epoch_seconds_without - value.epoch_seconds_with, 0.0);
    value.marginal_seconds_per_gib =
        std::max(value.epoch_seconds_with - seconds_with(input, input.cached + gib(1)), 0.0);
    const double gibs = count(input.cached) / kGib;
    if (gibs > 0) {
        value.seconds_per_gib = value.seconds_saved_per_epoch / gibs;
        value.gpu_seconds_saved_per_gib_hour =
            value.seconds_per_gib * input.gpu_count * kSecondsPerHour / value.epoch_seconds_with;
    }
    return value;
}

}  // namespace stoker::control
