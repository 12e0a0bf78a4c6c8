#include "sidecar/origin/concurrency_limit.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/base/check.h"

namespace stoker::sidecar {

namespace {

constexpr double kRequestWork = 65536;  // a request's fixed cost, in bytes
constexpr double kMoreGain = 0.02;      // a larger limit is kept if throughput grows by this
constexpr double kLessLoss = 0.01;      // a smaller limit is kept if throughput falls by less
constexpr double kGrowthFast = 2;
constexpr double kGrowthSlow = 1.25;
constexpr double kDoubledGain = 0.1;   // a doubled limit is kept if throughput grows by this
constexpr double kDoublingGain = 1.5;  // below this growth, the next step is kGrowthSlow
constexpr double kShrinkTried = 0.8;
constexpr double kShrinkTaken = 0.9;
constexpr double kPushedBack = 0.7;
constexpr double kPushBackShare =
    0.05;                            // of the limit, or of the round's requests if these are more
constexpr double kPushBacksMin = 4;  // per round, however few its requests are
constexpr double kOtherLoad = 0.15;  // a change of the throughput above this is not noise
constexpr double kBusyShare = 0.5;   // share of the limit that must be in flight
constexpr std::uint32_t kArrivedMin = 32;

double seconds(Duration duration) {
    return std::chrono::duration<double>(duration).count();
}

std::uint32_t scaled(std::uint32_t limit, double factor) {
    return static_cast<std::uint32_t>(std::lround(limit * factor));
}

}  // namespace

ConcurrencyLimit::ConcurrencyLimit(Limits limits)
    : limits_(limits),
      limit_(std::min(limits.first, limits.max)),
      base_(limit_),
      pause_(limits.pause_min),
      pause_left_(limits.pause_min) {
    STOKER_CHECK(limits.max > 0 && limits.first > 0, "at least one request may be in flight");
    limits_.searched_min = std::min(limits_.searched_min, limits_.max);
    limits_.min = std::min(limits_.min, limits_.max);
}

void ConcurrencyLimit::set_in_flight(std::uint32_t in_flight, TimePoint now) {
    request_seconds_ += in_flight_ * seconds(now - counted_at_);
    counted_at_ = now;
    in_flight_ = in_flight;
}

ConcurrencyLimit::Ticket ConcurrencyLimit::on_started(TimePoint now) {
    if (in_flight_ == 0) {
        begin_round(limit_, phase_, now);  // so that idle time belongs to no round
    }
    set_in_flight(in_flight_ + 1, now);
    return {round_, now};
}

void ConcurrencyLimit::on_arrived(const Ticket& ticket, std::uint64_t bytes, TimePoint now) {
    set_in_flight(in_flight_ - 1, now);
    if (ticket.round != round_) {
        return;
    }
    if (is_settling_) {
        is_settling_ = false;
        begin_measuring(now);
        return;
    }
    ++arrived_;
    arrived_seconds_ += seconds(now - ticket.started_at);
    arrived_work_ += static_cast<double>(bytes) + kRequestWork;
    if (has_enough(now)) {
        end_round(now);
    }
}

void ConcurrencyLimit::on_push_back(const Ticket& ticket, TimePoint now) {
    const double tolerated = std::max(kPushBackShare * std::max(limit_, arrived_), kPushBacksMin);
    if (ticket.round < first_round_ || in_flight_ < kBusyShare * limit_ ||
        ++push_backs_ <= tolerated) {
        return;
    }
    if (phase_ == Phase::kMore) {
        hold_after_failed_try(now);
        return;
    }
    base_ = std::max(scaled(std::min(limit_, base_), kPushedBack), std::min(limits_.min, base_));
    base_throughput_ = 0;
    growth_ = kGrowthSlow;
    climbing_ = true;
    begin_round(base_, Phase::kHold, now);
}

bool ConcurrencyLimit::has_enough(TimePoint now) const {
    const Duration time = now - measured_from_;
    const bool is_brief = climbing_ || time >= limits_.round_long;
    const std::uint32_t wanted = limit_ * (is_brief ? 1 : phase_ == Phase::kHold ? 4 : 2);
    return arrived_ >= std::max(wanted, kArrivedMin) && time >= limits_.round_min;
}

void ConcurrencyLimit::begin_round(std::uint32_t limit, Phase phase, TimePoint now) {
    is_settling_ = is_settling_ || limit != limit_;
    limit_ = limit;
    phase_ = phase;
    push_backs_ = 0;
    first_round_ = round_ + 1;
    begin_measuring(now);
}

void ConcurrencyLimit::begin_measuring(TimePoint now) {
    ++round_;
    measured_from_ = now;
    counted_at_ = now;
    request_seconds_ = 0;
    arrived_ = 0;
    arrived_seconds_ = 0;
    arrived_work_ = 0;
}

void ConcurrencyLimit::end_round(TimePoint now) {
    const double in_flight = request_seconds_ / std::max(seconds(now - measured_from_), 1e-9);
    if (in_flight < kBusyShare * limit_) {
        begin_round(base_, Phase::kHold, now);
        return;
    }
    const double throughput = in_flight * arrived_work_ / std::max(arrived_seconds_, 1e-9);
    switch (phase_) {
        case Phase::kHold:
            return end_hold(throughput, now);
        case Phase::kMore:
            return end_more(throughput, now);
        case Phase::kLess:
            return end_less(throughput, now);
    }
}

void ConcurrencyLimit::end_hold(double throughput, TimePoint now) {
    note_base(throughput);
    if (climbing_) {
        try_more(now);
    } else if (pause_left_ > 0) {
        --pause_left_;
        begin_round(base_, Phase::kHold, now);
    } else if (less_is_next_) {
        try_less(now);
    } else {
        try_more(now);
    }
}

// Records a round's throughput at the limit `base_`. If two such rounds in a row differ much from
// base_throughput_, this is not noise: the search starts again.
void ConcurrencyLimit::note_base(double throughput) {
    if (base_throughput_ == 0) {
        base_throughput_ = throughput;
        return;
    }
    const double change = throughput / base_throughput_ - 1;
    if (std::abs(change) <= kOtherLoad) {
        changed_rounds_ = 0;
        noise_ += (std::abs(change) - noise_) / 8;
        base_throughput_ += (throughput - base_throughput_) / 4;
    } else if (++changed_rounds_ == 2) {
        changed_rounds_ = 0;
        base_throughput_ = throughput;
        pause_ = limits_.pause_min;
        climbing_ = true;
        growth_ = kGrowthFast;
    }
}

void ConcurrencyLimit::try_more(TimePoint now) {
    const std::uint32_t more = std::min(std::max(scaled(base_, growth_), base_ + 1), limits_.max);
    if (more == base_) {
        end_climb(now);
        return;
    }
    begin_round(more, Phase::kMore, now);
}

void ConcurrencyLimit::try_less(TimePoint now) {
    const std::uint32_t less = scaled(base_, kShrinkTried);
    if (less < limits_.searched_min) {
        hold_after_failed_try(now);
        return;
    }
    begin_round(less, Phase::kLess, now);
}

void ConcurrencyLimit::end_more(double throughput, TimePoint now) {
    const bool has_doubled = growth_ == kGrowthFast;
    if (throughput < base_throughput_ * kDoublingGain) {
        growth_ = kGrowthSlow;
    }
    const double gain =
        has_doubled ? kDoubledGain : std::clamp(2 * noise_, kMoreGain, kDoubledGain);
    if (throughput < base_throughput_ * (1 + gain)) {
        has_doubled ? try_more(now) : end_climb(now);
        return;
    }
    base_ = limit_;
    base_throughput_ = throughput;
    pause_ = limits_.pause_min;
    try_more(now);
}

// Ends an upward search; then searches downwards, as the last step may have been too long.
void ConcurrencyLimit::end_climb(TimePoint now) {
    if (std::exchange(climbing_, false)) {
        try_less(now);
    } else {
        hold_after_failed_try(now);
    }
}

// Ends a round with a smaller limit. If the smaller limit becomes `base_`, base_throughput_ keeps
// the larger limit's throughput, so that small losses do not add up.
void ConcurrencyLimit::end_less(double throughput, TimePoint now) {
    if (throughput < base_throughput_ * (1 - kLessLoss)) {
        hold_after_failed_try(now);
        return;
    }
    base_ = scaled(base_, kShrinkTaken);
    pause_ = limits_.pause_min;
    try_less(now);
}

void ConcurrencyLimit::hold_after_failed_try(TimePoint now) {
    growth_ = kGrowthSlow;
    climbing_ = false;
    const bool is_low = base_ < limits_.searched_min;  // only a larger limit can help
    less_is_next_ = !less_is_next_ && !is_low;
    pause_left_ = is_low ? std::min(pause_, limits_.pause_min) : pause_;
    pause_ = std::min(pause_ * 2, limits_.pause_max);
    begin_round(base_, Phase::kHold, now);
}

}  // namespace stoker::sidecar
