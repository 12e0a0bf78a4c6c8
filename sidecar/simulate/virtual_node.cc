#include "sidecar/simulate/virtual_node.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"

namespace stoker::simulate {

namespace {

// Background refills are fetched for a party of their own: a job's first read of a sample that
// another party fetched counts as a hit.
constexpr sidecar::Party kRefills{1};
constexpr sidecar::ConnectionId kRefiller{UINT64_MAX};

sidecar::EngineLimits limits_of(const VirtualNode::Setting& setting) {
    sidecar::EngineLimits limits;
    limits.window = setting.window_bytes;
    limits.max_in_flight = setting.origin.requests_max;
    return limits;
}

}  // namespace

VirtualNode::VirtualNode(Setting setting)
    : sizes_(setting.sizes),
      engine_(
          sidecar::SampleSizes{setting.sizes},
          limits_of(setting),
          {setting.resident_bytes, std::nullopt},
          std::move(setting.eviction)),
      link_(setting.origin),
      refiller_(setting.refiller) {
    if (refiller_ != nullptr) {
        engine_.fetch().on_connect(kRefiller, std::nullopt, kRefills);
    }
}

void VirtualNode::join(std::size_t job, EpochFigures& figures) {
    figures_.resize(std::max(figures_.size(), job + 1));
    figures_[job] = &figures;
}

void VirtualNode::leave(std::size_t job) {
    figures_[job] = nullptr;
}

EpochFigures& VirtualNode::pay(SampleIndex sample, std::size_t job) {
    const auto other = std::ranges::find_if(figures_, [](auto* figures) { return figures; });
    STOKER_CHECK(other != figures_.end(), "a fetch after all jobs have ended");
    EpochFigures& figures = figures_[job] != nullptr ? *figures_[job] : **other;
    ++figures.origin_requests;
    ++figures.origin_samples;
    figures.origin_bytes += Bytes{sizes_[sample]};
    return figures;
}

void VirtualNode::apply(const sidecar::Effects& effects, std::size_t job, TimePoint now) {
    for (const sidecar::StartFetch& fetch : effects.fetches) {
        EpochFigures& figures = pay(fetch.sample, job);
        figures.refill_samples += engine_.fetch().sample(fetch.sample).party == kRefills ? 1 : 0;
        const TimePoint at = link_.transfer(now, Bytes{sizes_[fetch.sample]});
        arrivals_.push_back({at, fetch.sample, static_cast<std::uint32_t>(job)});
    }
    STOKER_CHECK(effects.verifies.empty(), "no job requests a stored sample twice");
    std::ranges::copy_if(effects.replies, std::back_inserter(replies_), [](const auto& reply) {
        return reply.connection != kRefiller;
    });
    tick_at_ = engine_.fetch().next_deadline(now);
}

TimePoint VirtualNode::read_at_origin(SampleIndex sample, std::size_t job, TimePoint now) {
    pay(sample, job);
    return link_.transfer(now, Bytes{sizes_[sample]});
}

void VirtualNode::refill(std::size_t job, TimePoint now) {
    if (refiller_ == nullptr) {
        return;
    }
    std::vector<SampleIndex> samples;
    refiller_->take_refills(samples);
    std::erase_if(samples, [this](SampleIndex sample) {
        return engine_.fetch().sample(sample).state != sidecar::SampleState::kAbsent;
    });
    if (!samples.empty()) {
        apply(engine_.fetch().on_fetch(kRefiller, 0, samples, now), job, now);
    }
}

std::optional<TimePoint> VirtualNode::next_event() const {
    if (arrivals_.empty()) {
        return tick_at_;
    }
    return std::min(tick_at_.value_or(arrivals_.front().at), arrivals_.front().at);
}

void VirtualNode::advance(TimePoint now) {
    if (tick_at_ && *tick_at_ <= now) {
        apply(engine_.fetch().tick(now), 0, now);
    }
    while (!arrivals_.empty() && arrivals_.front().at <= now) {
        const Arrival arrival = arrivals_.front();
        arrivals_.pop_front();
        const Bytes size{sizes_[arrival.sample]};
        engine_.note_load(size, link_.request_time(size));
        apply(engine_.fetch().on_stored(arrival.sample, now), arrival.job, now);
    }
}

}  // namespace stoker::simulate
