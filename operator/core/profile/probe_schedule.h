#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "common/base/clock.h"
#include "operator/api/sidecar_report.h"

namespace stoker::control {

// Probe settings from spec.cache.profiling.
struct ProbeWish {
    bool is_wanted = false;
    std::uint32_t batches = 200;  // without the cache, and as many with it
    Duration patience = std::chrono::seconds{120};
};

struct ProbeInput {
    ProbeWish wish;
    bool is_profiled = false;    // the job has a profile to compare with
    std::uint64_t regime = 0;    // JobProfiler::regime(); a change voids the measurement
    std::size_t rank_count = 1;  // ranks that must answer
    const std::vector<SidecarReport>& ranks;
};

struct ProbeStep {
    std::optional<Probe> ask;       // probe to send now; unchanged until it is answered
    std::optional<double> benefit;  // measured: time per byte without ÷ with the cache
};

// Schedules probes of a job and evaluates the answers. In a probe each rank reads some batches with
// the cache and as many without. Sends one probe for each JobProfiler::regime(); if no answer comes
// in time, tries again later. All ranks must answer: they wait for each other, so one rank's answer
// has no meaning. Pure; not thread-safe.
class ProbeSchedule {
public:
    // Probe ids start at `first_id`. It should differ from ids of an earlier operator, whose
    // answers are still in the reports: for example microseconds since the Unix epoch.
    explicit ProbeSchedule(std::uint64_t first_id)
        : next_id_(first_id) {}

    ProbeStep step(const ProbeInput& input, TimePoint now);

    static constexpr Duration kAgainAfter = std::chrono::minutes{10};

private:
    struct Asked {
        Probe probe;
        TimePoint at{};
        std::uint64_t regime = 0;
    };

    [[nodiscard]] std::optional<double> result_of(const ProbeInput& input) const;

    std::uint64_t next_id_;
    std::optional<Asked> asked_;
    std::optional<std::uint64_t> measured_regime_;
    TimePoint not_before_{};
};

}  // namespace stoker::control
