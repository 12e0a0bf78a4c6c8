#include "sidecar/origin/concurrency_limit.h"

#include <algorithm>
#include <functional>
#include <map>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/test_seed.h"

namespace stoker::sidecar {
namespace {

using namespace std::chrono_literals;

// An origin in virtual time: each request waits `first_byte`, then its bytes pass a link that they
// share in order of arrival. Above `requests_max` it answers 503 after `first_byte`.
struct OriginModel {
    Duration first_byte = 20ms;
    double bytes_per_second = 200e6;
    std::uint32_t requests_max = UINT32_MAX;
    double jitter = 0;  // of first_byte; 1: exponential above half of it
    double errors = 0;  // share of requests that get a 503, whatever the load
};

constexpr std::uint64_t kSampleBytes = 110'000;
constexpr Duration kRetryDelay = 100ms;

// A sidecar that always has samples to fetch and keeps as many requests in flight as it may.
class LoadRun {
public:
    explicit LoadRun(
        OriginModel model, ConcurrencyLimit::Limits limits = {}, std::uint64_t seed = 1)
        : model_(model),
          limit_(limits),
          random_(seed) {}

    // Number of samples per second in this time.
    double run_for(Duration time) {
        const TimePoint end = now_ + time;
        const std::uint64_t before = arrived_;
        fill();
        while (!events_.empty() && events_.begin()->first <= end) {
            const auto first = events_.begin();
            now_ = first->first;
            const auto event = std::move(first->second);
            events_.erase(first);
            event();
            highest_ = std::max(highest_, limit_.limit());
            lowest_ = std::min(lowest_, limit_.limit());
            fill();
        }
        now_ = end;
        return static_cast<double>(arrived_ - before) / std::chrono::duration<double>(time).count();
    }

    void set_origin(OriginModel model) { model_ = model; }

    // Requests that the trainer's pace allows, if fewer than the limit.
    void set_wanted(std::uint32_t wanted) { wanted_ = wanted; }

    void set_bytes(std::function<std::uint64_t()> bytes) { bytes_ = std::move(bytes); }

    // Highest and lowest limit since the last call.
    std::pair<std::uint32_t, std::uint32_t> take_range() {
        return {std::exchange(lowest_, limit_.limit()), std::exchange(highest_, limit_.limit())};
    }

    [[nodiscard]] std::uint32_t limit() const { return limit_.limit(); }

    [[nodiscard]] std::uint64_t rejected() const { return rejected_; }

    // Samples per second that a fixed number of requests reaches at this origin.
    static double of_fixed(const OriginModel& model, std::uint32_t requests) {
        LoadRun run{model, {.first = requests, .max = requests, .searched_min = requests}};
        run.run_for(4s);
        return run.run_for(8s);
    }

private:
    void fill() {
        while (in_flight_ < std::min(limit_.limit(), wanted_)) {
            ++in_flight_;
            send(limit_.on_started(now_));
        }
    }

    void send(ConcurrencyLimit::Ticket ticket) {
        if (++at_origin_ > model_.requests_max || has_error()) {
            events_.emplace(now_ + model_.first_byte, [this, ticket] {
                --at_origin_;
                ++rejected_;
                limit_.on_push_back(ticket, now_);
                events_.emplace(now_ + kRetryDelay, [this, ticket] { send(ticket); });
            });
            return;
        }
        const std::uint64_t bytes = bytes_ ? bytes_() : kSampleBytes;
        events_.emplace(now_ + first_byte(), [this, ticket, bytes] {
            link_free_ = std::max(link_free_, now_) +
                         to_duration(static_cast<double>(bytes) / model_.bytes_per_second);
            events_.emplace(link_free_, [this, ticket, bytes] { arrive(ticket, bytes); });
        });
    }

    bool has_error() { return std::bernoulli_distribution{model_.errors}(random_); }

    void arrive(ConcurrencyLimit::Ticket ticket, std::uint64_t bytes) {
        --at_origin_;
        --in_flight_;
        ++arrived_;
        limit_.on_arrived(ticket, bytes, now_);
    }

    static Duration to_duration(double seconds) {
        return std::chrono::duration_cast<Duration>(std::chrono::duration<double>{seconds});
    }

    Duration first_byte() {
        const double factor =
            1 - model_.jitter / 2 +
            (model_.jitter > 0 ? std::exponential_distribution{2 / model_.jitter}(random_) : 0);
        return to_duration(std::chrono::duration<double>(model_.first_byte).count() * factor);
    }

    OriginModel model_;
    ConcurrencyLimit limit_;
    std::mt19937_64 random_;
    std::function<std::uint64_t()> bytes_;
    TimePoint now_{1h};
    TimePoint link_free_{};
    std::multimap<TimePoint, std::function<void()>> events_;
    std::uint32_t wanted_ = UINT32_MAX;
    std::uint32_t in_flight_ = 0;
    std::uint32_t at_origin_ = 0;
    std::uint64_t arrived_ = 0;
    std::uint64_t rejected_ = 0;
    std::uint32_t lowest_ = UINT32_MAX;
    std::uint32_t highest_ = 0;
};

double link_rate(const OriginModel& model) {
    return model.bytes_per_second / kSampleBytes;
}

TEST(ConcurrencyLimit, StartsAtItsFirstValueAndNeverExceedsItsMaximum) {
    EXPECT_EQ(ConcurrencyLimit({}).limit(), 64U);
    EXPECT_EQ(ConcurrencyLimit({.max = 6}).limit(), 6U);
    LoadRun run{{.first_byte = 200ms}, {.max = 100}};
    run.run_for(20s);
    EXPECT_EQ(run.take_range().second, 100U);
}

TEST(ConcurrencyLimit, ReachesTheLinksThroughput) {
    for (const Duration first_byte :
         {Duration{50us}, Duration{2ms}, Duration{20ms}, Duration{80ms}, Duration{200ms}}) {
        for (const double bytes_per_second : {20e6, 100e6, 200e6}) {
            const OriginModel model{first_byte, bytes_per_second};
            LoadRun run{model};
            run.run_for(10s);
            EXPECT_GE(run.run_for(20s), link_rate(model) * 0.95)
                << first_byte.count() << " ns, " << bytes_per_second << " B/s, limit "
                << run.limit();
        }
    }
}

TEST(ConcurrencyLimit, FillsTheLinkWithinFourSecondsIfTheFirstByteTakes200Milliseconds) {
    LoadRun run{{.first_byte = 200ms}};
    run.run_for(4s);
    EXPECT_GE(run.run_for(4s), link_rate({}) * 0.95);
}

TEST(ConcurrencyLimit, StaysNearTheKnee) {
    LoadRun run{{.first_byte = 20ms}};  // the link alone has room for 37 requests
    run.run_for(60s);
    run.take_range();
    run.run_for(60s);
    const auto [lowest, highest] = run.take_range();
    EXPECT_GE(lowest, 30U);
    EXPECT_LE(highest, 64U);
}

TEST(ConcurrencyLimit, ReachesTheLinksThroughputWithJitterAndMixedSizes) {
    const std::uint64_t seed = test::seed();
    for (const Duration first_byte : {Duration{2ms}, Duration{20ms}, Duration{200ms}}) {
        const OriginModel model{first_byte, 100e6, UINT32_MAX, 0.8};
        LoadRun run{model, {}, seed};
        std::mt19937_64 sizes{seed};
        std::exponential_distribution<double> size{1.0 / kSampleBytes};
        run.set_bytes([&] { return static_cast<std::uint64_t>(size(sizes)); });
        run.run_for(15s);
        EXPECT_GE(run.run_for(60s), link_rate(model) * 0.93) << "of sizes with 1 % noise";
    }
}

TEST(ConcurrencyLimit, IsNeverSlowerThanTheRequestsItStartsWith) {
    for (const Duration first_byte :
         {Duration{50us}, Duration{2ms}, Duration{20ms}, Duration{80ms}, Duration{200ms}}) {
        const OriginModel model{first_byte, 150e6};
        LoadRun run{model};
        EXPECT_GE(run.run_for(5s), LoadRun::of_fixed(model, 64) * 0.95) << first_byte.count();
        EXPECT_GE(run.run_for(20s), LoadRun::of_fixed(model, 64) * 0.97) << first_byte.count();
    }
}

TEST(ConcurrencyLimit, StaysBelowTheOriginsCapExceptForRareTries) {
    const OriginModel model{20ms, 1e9, 100};
    LoadRun run{model, {.first = 256}};
    run.run_for(20s);
    const std::uint64_t before = run.rejected();
    const double rate = run.run_for(60s);
    EXPECT_GE(rate, LoadRun::of_fixed({20ms, 1e9}, 100) * 0.7);
    EXPECT_LE(static_cast<double>(run.rejected() - before), rate * 60 * 0.01);
}

TEST(ConcurrencyLimit, BacksOffWhileTheOriginRejectsAllAndRecovers) {
    LoadRun run{{.first_byte = 200ms}};
    run.run_for(10s);
    run.set_origin({.first_byte = 20ms, .requests_max = 0});
    run.run_for(20s);
    EXPECT_LT(run.limit(), 360U) << "once for the requests in flight";
    run.set_origin({.first_byte = 200ms});
    run.run_for(10s);
    EXPECT_GE(run.run_for(10s), link_rate({}) * 0.95);
}

// Starts as many requests as the limit allows, and pushes the last one back.
void push_back(ConcurrencyLimit& limit, int times) {
    ConcurrencyLimit::Ticket ticket{};
    for (std::uint32_t i = limit.limit(); i > 0; --i) {
        ticket = limit.on_started(TimePoint{1s});
    }
    for (int i = 0; i < times; ++i) {
        limit.on_push_back(ticket, TimePoint{2s});
    }
}

TEST(ConcurrencyLimit, FourPushBacksDoNotCutTheLimitAndARoundCutsItOnce) {
    ConcurrencyLimit limit{{}};
    push_back(limit, 4);
    EXPECT_EQ(limit.limit(), 64U);
    push_back(limit, 20);
    EXPECT_EQ(limit.limit(), 45U) << "the request belongs to the round before";
}

TEST(ConcurrencyLimit, PushBacksOfALoneRequestDoNotCutTheLimit) {
    ConcurrencyLimit limit{{}};
    const auto ticket = limit.on_started(TimePoint{1s});
    for (int i = 0; i < 100; ++i) {
        limit.on_push_back(ticket, TimePoint{2s});
    }
    EXPECT_EQ(limit.limit(), 64U);
}

TEST(ConcurrencyLimit, KeepsAFewRequestsHoweverOftenItIsPushedBack) {
    ConcurrencyLimit limit{{}};
    for (int i = 0; i < 100; ++i) {
        push_back(limit, 5);
    }
    EXPECT_EQ(limit.limit(), 4U);
}

TEST(ConcurrencyLimit, ErrorsThatLoadDoesNotCauseCutTheRateLittle) {
    for (const Duration first_byte : {20ms, 200ms}) {
        OriginModel model{first_byte};
        model.errors = 0.01;
        LoadRun run{model};
        run.run_for(60s);
        EXPECT_GT(run.run_for(60s), 0.9 * link_rate(model));
    }
}

TEST(ConcurrencyLimit, RecoversSoonFromErrors) {
    for (std::uint64_t seed = 1; seed <= 8; ++seed) {
        OriginModel model{200ms};
        model.errors = 0.1;
        LoadRun run{model, {}, seed};
        run.run_for(120s);
        model.errors = 0;
        run.set_origin(model);
        run.run_for(30s);
        EXPECT_GT(run.run_for(10s), 0.9 * link_rate(model)) << "seed " << seed;
    }
}

TEST(ConcurrencyLimit, FollowsTheBandwidth) {
    LoadRun run{{.first_byte = 80ms, .bytes_per_second = 200e6}};
    run.run_for(20s);
    run.set_origin({.first_byte = 80ms, .bytes_per_second = 20e6});
    run.run_for(60s);
    EXPECT_GE(run.run_for(20s), link_rate({.bytes_per_second = 20e6}) * 0.95);
    EXPECT_LE(run.limit(), 64U) << "the link has room for 15";
    run.set_origin({.first_byte = 80ms, .bytes_per_second = 200e6});
    run.run_for(15s);
    EXPECT_GE(run.run_for(20s), link_rate({}) * 0.95);
}

TEST(ConcurrencyLimit, LearnsNothingFromATrainerThatReadsSlowly) {
    LoadRun run{{.first_byte = 200ms}};
    run.set_wanted(20);
    run.run_for(60s);
    EXPECT_EQ(run.limit(), 64U);
    run.set_wanted(UINT32_MAX);
    run.run_for(6s);
    EXPECT_GE(run.run_for(10s), link_rate({}) * 0.95);
}

TEST(ConcurrencyLimit, TriesLessOftenWhileNothingChanges) {
    LoadRun run{{.first_byte = 20ms, .bytes_per_second = 200e6}};
    run.run_for(200s);
    run.take_range();
    int changes = 0;
    for (int i = 0; i < 100; ++i) {
        const std::uint32_t before = run.limit();
        run.run_for(200ms);
        changes += run.limit() != before ? 1 : 0;
    }
    EXPECT_LE(changes, 4);
}

}  // namespace
}  // namespace stoker::sidecar
