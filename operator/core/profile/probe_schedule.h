#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "common/base/clock.h"
#include "operator/api/sidecar_report.h"

namespace stoker::control {

// What spec.cache.profiling asks for.
struct ProbeWish {
    bool is_wanted = false;
    std::uint32_t batches = 200;  // past the cache, and as many through it
    Duration patience = std::chrono::seconds{120};
};

struct ProbeInput {
    ProbeWish wish;
    bool is_profiled = false;    // there is something to compare with
    std::uint64_t regime = 0;    // JobProfiler::regime(): another one voids what was measured
    std::size_t rank_count = 1;  // that must answer
    const std::vector<SidecarReport>& ranks;
};

struct ProbeStep {
    std::optional<Probe> ask;       // to be asked now; the same as long as it is not answered
    std::optional<double> benefit;  // measured: time per byte past the cache ÷ through it
};

// When to ask a job for a measurement, and what comes of it. One for each regime; one that is not
// answered in time is given up and tried again later. All ranks must answer: they wait for each
// other, so a rank alone says nothing. Pure; not thread-safe.
class ProbeSchedule {
public:
    // Ids go up from `first_id`. It should differ from those of an operator before, whose answer is
    // still in the reports: for example microseconds since the epoch.
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
