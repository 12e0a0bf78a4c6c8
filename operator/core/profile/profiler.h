#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
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

// What is known of a job now. The lists may be in any order.
struct ProfileInput {
    const std::vector<SidecarReport>& ranks;    // of the present attempt
    const std::vector<SidecarReport>& leaders;  // whose sidecars fetch the job's datasets on its
                                                // nodes; of this job or of another one
    std::size_t rank_count = 1;                 // that should report
    Bytes granted{};
};

// Watches one job's totals and keeps its profile. How: every window gives the rate r that the job
// read with and the share s of its time that it waited; were data never late, it would read
// f* = r/(1-s). A window in which it waited shows what the origin gives, or what the plan leaves it
// of that; one in which it did not shows what the origin gives at least; a wait with everything on
// the nodes is for something else (decoding), and counts as computing. The profile is made of
// medians, first of a few windows, once again when all are there; after that, what was published
// stays until they are another fifth away, so that noise neither shows nor moves bytes. Windows
// from before a change (of the ranks, of the grant, of a rate) are forgotten, the origin's
// excepted; f* does not depend on the grant, so that one takes none of its windows away.
//
// f* itself is what all windows read over the time that they computed, so that a step that falls
// into one window or the next does not show: of steps of 1.4 s seven or eight are in ten seconds,
// and their median would be up to 12 % off. Windows that are far from the median stay out of it.
//
// Totals of several trainers on one node that fetch the same data together count for each of them.
// Numbers that cannot be are refused and counted. Pure: time is that of the reports. Not
// thread-safe.
class JobProfiler {
public:
    // True when the published profile changed.
    bool observe(const ProfileInput& input);

    // A measurement past the cache beside one through it came in: time per byte without ÷ with.
    // Refuses a factor that is not a number or is out of range. True when the published profile
    // changed.
    bool take_measured(double benefit);

    [[nodiscard]] const JobProfile& profile() const { return published_; }

    [[nodiscard]] std::uint64_t refused() const { return refused_; }

    // How often the past was forgotten; a measurement from before is void.
    [[nodiscard]] std::uint64_t regime() const { return regime_; }

private:
    struct Window {
        double seconds = 0;
        double read_rate = 0;
        double ingest_rate = 0;  // read_rate ÷ compute_share
        double compute_share = 1;
        double wait_share = 0;
        double sample_bytes = 0;
        std::optional<double> origin_rate{};  // none: no leader told it from start to end
        double origin_latency = 0;
        double miss_share = 0;
    };

    // Several windows as one.
    struct Pooled {
        double bytes = 0;
        double computing = 0;  // seconds
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
    [[nodiscard]] static Pooled pool(const std::deque<Window>& windows);
    [[nodiscard]] double confidence() const;
    [[nodiscard]] ProfileVerdict judge(const JobProfile& profile) const;
    bool publish(bool is_whole);
    [[nodiscard]] bool is_news(const JobProfile& next) const;

    std::optional<Start> start_;
    Bytes granted_{};
    std::deque<Window> windows_;  // of the grant of now
    // Windows that the present f* is estimated from, from before a grant, too: a profile that lost
    // confidence with each grant would move bytes for ever.
    std::deque<Window> paces_;
    std::deque<double> origin_waited_for_;  // rates of windows in which the job waited
    std::deque<double> origin_at_least_;    // the fastest of the others, sorted
    JobProfile published_;
    std::uint64_t refused_ = 0;
    std::uint64_t regime_ = 0;
};

}  // namespace stoker::control
