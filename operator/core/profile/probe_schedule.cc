#include "operator/core/profile/probe_schedule.h"

#include <algorithm>

namespace stoker::control {

namespace {

double seconds_per_byte(const ProbeSide& side) {
    return std::chrono::duration<double>(side.time).count() /
           static_cast<double>(side.bytes.count());
}

bool is_complete(const ProbeSide& side, std::uint32_t batches) {
    return side.batches >= batches && side.bytes > Bytes::zero() && side.time > Duration::zero();
}

}  // namespace

std::optional<double> ProbeSchedule::result_of(const ProbeInput& input) const {
    std::vector<double> ratios;
    for (const SidecarReport& report : input.ranks) {
        const ProbeReport& told = report.trainer.probe;
        if (told.id == asked_->probe.id && is_complete(told.bypassed, asked_->probe.batches) &&
            is_complete(told.cached, asked_->probe.batches)) {
            ratios.push_back(seconds_per_byte(told.bypassed) / seconds_per_byte(told.cached));
        }
    }
    if (ratios.empty() || ratios.size() < input.rank_count) {
        return std::nullopt;
    }
    const auto middle = ratios.begin() + static_cast<std::ptrdiff_t>(ratios.size() / 2);
    std::nth_element(ratios.begin(), middle, ratios.end());
    return *middle;
}

ProbeStep ProbeSchedule::step(const ProbeInput& input, TimePoint now) {
    if (!input.wish.is_wanted || (asked_ && asked_->regime != input.regime)) {
        asked_.reset();
    }
    if (!input.wish.is_wanted || !input.is_profiled) {
        return {};
    }
    if (asked_) {
        if (const auto benefit = result_of(input)) {
            measured_regime_ = asked_->regime;
            asked_.reset();
            return {std::nullopt, benefit};
        }
        if (now - asked_->at <= input.wish.patience) {
            return {asked_->probe, std::nullopt};
        }
        asked_.reset();
        not_before_ = now + kAgainAfter;
        return {};
    }
    if (measured_regime_ == input.regime || now < not_before_) {
        return {};
    }
    asked_ = Asked{{next_id_++, input.wish.batches}, now, input.regime};
    return {asked_->probe, std::nullopt};
}

}  // namespace stoker::control
