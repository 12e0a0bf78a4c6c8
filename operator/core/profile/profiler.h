#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/bytes.h"
#include "common/base/clock.h"
#include "operator/api/sidecar_report.h"
#include "operator/core/profile/job_profile.h"

namespace stoker::control {

// Input for one job's profile. The lists may be in any order.
struct ProfileInput {
    const std::vector<SidecarReport>& ranks;  // of the present attempt
    // Reports of sidecars, of any job, that fetch the job's datasets on its nodes.
    const std::vector<SidecarReport>& leaders;
    std::size_t rank_count = 1;  // ranks that should report
    Bytes granted{};
};

// Builds one job's profile from its totals, by windows of time (not the cache's window). Each
// window gives the read rate r and the wait share s; without waiting, the job would read f* =
// r/(1-s). If it waits, r is the origin's rate (or the plan's limit), else a lower bound of it.
// Waiting while all bytes are on the nodes has another cause (decoding) and counts as computing.
//
// f* and the read rate are ratios of sums over windows, the other figures are medians. They are
// published first after a few windows, again once all windows exist, and later only if they differ
// by a fifth, so that noise moves no bytes. A change of ranks or of f* drops the old windows.
// A change of the grant drops them too, except those for f*, which does not depend on the grant.
// Measurements of the origin's rate are kept in all these cases.
//
// f* is the bytes read in all windows over their computing time, which hides whether a step falls
// into one window or the next: 10 s hold seven or eight steps of 1.4 s, and a median would be up to
// 12 % off. Windows far from the median are left out.
//
// If several trainers on one node share a fetch, its bytes count for each of them. Out-of-range
// numbers are refused and counted. Pure: times come from the reports. Not thread-safe.
class JobProfiler {
public:
    // Returns whether the published profile changed.
    bool observe(const ProfileInput& input);

    // Takes a probe's result: time per byte without the cache ÷ with it. Refuses a NaN or
    // out-of-range factor. Returns whether the published profile changed.
    bool take_measured(double benefit);

    [[nodiscard]] const JobProfile& profile() const { return published_; }

    [[nodiscard]] std::uint64_t refused() const { return refused_; }

    // Number of times that old windows were dropped; a probe from an earlier regime is void.
    [[nodiscard]] std::uint64_t regime() const { return regime_; }

private:
    struct Window {
        double seconds = 0;
        double read_rate = 0;
        double ingest_rate = 0;  // read_rate ÷ compute_share
        double compute_share = 1;
        double wait_share = 0;
        double sample_bytes = 0;
        std::optional<double> origin_rate{};  // none: no leader reported it for the whole window
        double origin_latency = 0;
        double miss_share = 0;
    };

    // Sums over several windows.
    struct Pooled {
        double bytes = 0;
        double computing = 0;  // seconds spent computing
        double seconds = 0;

        void add(const Window& window) {
            bytes += window.read_rate * window.seconds;
            computing += window.compute_share * window.seconds;
            seconds += window.seconds;
        }

        [[nodiscard]] double ingest_rate() const { return bytes / computing; }

        [[nodiscard]] double read_rate() const { return bytes / seconds; }
    };

    struct Fetched {
        TimePoint at{};
        std::uint64_t bytes = 0;
        std::uint64_t requests = 0;
        Duration time{};
    };

    using Fetches = std::map<std::pair<std::string, std::string>, Fetched>;  // by pod, dataset uid

    struct Start {
        std::map<std::string, SidecarReport> ranks;  // by pod
        Fetches fetches;
    };

    [[nodiscard]] Start read(const ProfileInput& input) const;
    [[nodiscard]] static bool same_ranks(const Start& a, const Start& b);
    [[nodiscard]] static bool has_fallen(const Start& before, const Start& after);
    [[nodiscard]] static bool has_begun(const Start& start);
    [[nodiscard]] bool is_long_enough(const Start& after) const;
    std::optional<Window> measure(const Start& after);
    void measure_fetches(const Fetches& after, double bytes, Window& window) const;
    bool keep(const Window& window);
    void keep_origin(const Window& window);
    void drop_a_past_bound();
    void forget_the_past();
    void forget_a_past_rate();
    [[nodiscard]] JobProfile candidate() const;
    [[nodiscard]] static Pooled pool(const std::vector<Window>& windows);
    [[nodiscard]] double confidence() const;
    [[nodiscard]] ProfileVerdict judge(const JobProfile& profile) const;
    bool publish(bool is_whole);
    [[nodiscard]] bool is_news(const JobProfile& next) const;

    std::optional<Start> start_;
    Bytes granted_{};
    std::vector<Window> windows_;  // since the present grant
    // Windows that f* is estimated from, including those before the present grant: if each grant
    // reduced the confidence, bytes would move forever.
    std::vector<Window> paces_;
    std::vector<double> origin_waited_for_;  // rates of windows with waiting
    std::vector<double> origin_at_least_;    // highest rates of the other windows, sorted
    JobProfile published_;
    std::uint64_t refused_ = 0;
    std::uint64_t regime_ = 0;
};

}  // namespace stoker::control
