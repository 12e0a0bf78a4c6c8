#include "operator/core/profile/job_profile.h"

#include <algorithm>
#include <cmath>

namespace stoker::control {

namespace {

constexpr double kGib = 1024.0 * 1024 * 1024;
constexpr double kSecondsPerHour = 3600;

double count(Bytes bytes) {
    return static_cast<double>(bytes.count());
}

// A curve is somebody else's function: what it says is bounded here, so that nothing absurd follows
// from it.
double miss_at(const MissMass& miss, Bytes cached) {
    const double share = miss(cached);
    return std::isnan(share) ? 1.0 : std::clamp(share, 0.0, 1.0);
}

bool is_known(const JobProfile& profile, Bytes epoch_bytes) {
    return profile.ingest_rate > 0 && profile.origin_rate > 0 && epoch_bytes > Bytes::zero();
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

MissMass uniform_miss_mass(Bytes dataset) {
    return [dataset](Bytes cached) {
        return cached >= dataset ? 0.0 : 1.0 - count(cached) / count(dataset);
    };
}

double predict_epoch_seconds(
    const JobProfile& profile, Bytes epoch_bytes, Bytes cached, const MissMass& miss) {
    if (!is_known(profile, epoch_bytes)) {
        return 0;
    }
    const double computing = 1 / profile.ingest_rate;
    const double fetching = miss_at(miss, cached) / profile.origin_rate;
    return count(epoch_bytes) * std::max(computing, fetching);
}

JobValue value_of(const ValueInput& input) {
    const JobProfile& profile = input.profile;
    JobValue value;
    if (!is_known(profile, input.epoch_bytes)) {
        return value;
    }
    const auto seconds_with = [&](Bytes cached) {
        return predict_epoch_seconds(profile, input.epoch_bytes, cached, input.miss);
    };
    value.epoch_seconds_best = count(input.epoch_bytes) / profile.ingest_rate;
    value.epoch_seconds_without = seconds_with(Bytes::zero());
    value.epoch_seconds_with = seconds_with(input.cached);
    if (profile.method == ProfileMethod::kMeasured && profile.measured_benefit > 0) {
        value.epoch_seconds_without = value.epoch_seconds_with * profile.measured_benefit;
    }
    value.benefit = value.epoch_seconds_without / value.epoch_seconds_with;
    value.potential = value.epoch_seconds_without / value.epoch_seconds_best;
    value.seconds_saved_per_epoch =
        std::max(value.epoch_seconds_without - value.epoch_seconds_with, 0.0);
    value.marginal_seconds_per_gib =
        std::max(value.epoch_seconds_with - seconds_with(input.cached + gib(1)), 0.0);
    const double gibs = count(input.cached) / kGib;
    if (gibs > 0) {
        value.seconds_per_gib = value.seconds_saved_per_epoch / gibs;
        value.gpu_seconds_saved_per_gib_hour =
            value.seconds_per_gib * input.gpu_count * kSecondsPerHour / value.epoch_seconds_with;
    }
    return value;
}

}  // namespace stoker::control
