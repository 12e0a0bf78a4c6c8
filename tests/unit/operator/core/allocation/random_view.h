#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
#include <string>

#include "common/base/prng.h"
#include "operator/core/allocation/allocation_view.h"

namespace stoker::control {

// A random cluster in which every field of an AllocationView sometimes differs from its default,
// and numbers are sometimes invalid.
class RandomView {
public:
    explicit RandomView(std::uint64_t seed)
        : prng_(seed) {}

    // `wild`: with NaN, infinities and unlimited bytes.
    AllocationView make(bool wild) {
        wild_ = wild;
        AllocationView view;
        const std::uint64_t node_count = 1 + prng_.below(4);
        for (std::uint64_t node = 0; node < node_count; ++node) {
            view.nodes.push_back({"p0", name("n", node), bytes(400)});
        }
        view.nodes.push_back({"p1", "n0", bytes(100)});
        for (const char* pool : {"p0", "p1"}) {
            if (chance(3)) {
                view.pools.push_back(
                    {pool,
                     choice<StopPolicy>(3),
                     choice<Objective>(4),
                     number(50),
                     number(2),
                     number(2),
                     {bytes(50), bytes(100), bytes(100)}});
            }
        }
        for (std::uint64_t ns = 0; ns < 3; ++ns) {
            if (chance(2)) {
                view.quotas.push_back(
                    {name("ns", ns),
                     "p0",
                     bytes(300),
                     choice<StopPolicy>(3),
                     bytes(100),
                     bytes(100),
                     number(3),
                     static_cast<std::uint32_t>(prng_.below(90)),
                     choice<ReclaimPolicy>(3)});
            }
        }
        const std::uint64_t job_count = prng_.below(6);
        for (std::uint64_t job = 0; job < job_count; ++job) {
            view.demands.push_back(demand(job, node_count));
        }
        for (std::uint64_t node = 0; node < node_count; ++node) {
            for (std::uint64_t uid = 0; uid < 4; ++uid) {
                if (chance(3)) {
                    view.holdings.push_back(
                        {"p0",
                         name("n", node),
                         name("d", uid),
                         bytes(60),
                         bytes(60),
                         bytes(60),
                         chance(4) ? "" : name("ns", uid % 3),
                         chance(8)});
                    if (chance(2)) {
                        view.holdings.back().target = bytes(60);
                    }
                }
            }
        }
        view.valid_seconds = static_cast<std::uint32_t>(1 + prng_.below(90));
        view.step = Bytes{1 + prng_.below(8)};
        view.hysteresis = 1 + static_cast<double>(prng_.below(10)) / 100;
        view.settled = !chance(8);
        return view;
    }

    std::uint64_t below(std::uint64_t bound) { return prng_.below(bound); }

private:
    static std::string name(const char* prefix, std::uint64_t number) {
        return prefix + std::to_string(number);
    }

    bool chance(std::uint64_t one_in) { return prng_.below(one_in) == 0; }

    template <class E>
    E choice(std::uint64_t count) {
        return static_cast<E>(prng_.below(count));
    }

    Bytes bytes(std::uint64_t bound) {
        return wild_ && chance(20) ? Bytes::unlimited() : Bytes{prng_.below(bound)};
    }

    double number(std::uint64_t bound) {
        if (wild_ && chance(20)) {
            return chance(2) ? std::numeric_limits<double>::quiet_NaN()
                             : std::numeric_limits<double>::infinity();
        }
        // Not a round number: a snapshot of the view must keep its last bit.
        return static_cast<double>(prng_.below(bound * 1000)) / 997;
    }

    AccessPattern access() {
        AccessPattern result{
            choice<AccessKind>(5), number(5), {}, number(1), number(4), number(20)};
        const std::uint64_t parts = result.kind == AccessKind::kMeasured ? prng_.below(9) : 0;
        for (std::uint64_t i = 0; i < parts; ++i) {
            result.sketch.push_back(static_cast<float>(number(7)));
        }
        return result;
    }

    Demand demand(std::uint64_t job, std::uint64_t node_count) {
        Demand result;
        result.job = {name("ns", prng_.below(3)), name("job", job)};
        result.created_at = WallTime{std::chrono::milliseconds{prng_.below(5000)}};
        result.pool = chance(8) ? "p1" : "p0";
        result.mode = chance(5) ? CacheMode::kFixed : CacheMode::kAuto;
        if (result.mode == CacheMode::kFixed || chance(3)) {
            result.max_bytes = Bytes{1 + prng_.below(200)};
        }
        result.min_bytes = Bytes{prng_.below(2) * prng_.below(40)};
        const std::uint64_t dataset_count = 1 + prng_.below(2);
        for (std::uint64_t i = 0; i < dataset_count; ++i) {
            const std::uint64_t uid = (job + i) % 4;
            result.datasets.push_back(
                {name("s", i), name("d", uid), Bytes{60 + 10 * uid}, access(), number(4)});
            if (chance(3)) {
                result.datasets.back().ns = name("ns", uid % 3);
            }
            if (chance(6)) {
                result.datasets.back().total.reset();
            }
        }
        for (std::uint64_t node = 0; node < node_count; ++node) {
            if (chance(2)) {
                result.nodes.push_back(name("n", node));
            }
        }
        if (!chance(4)) {
            result.rates = JobRates{number(40), number(10), number(1), chance(5)};
        }
        result.weight = number(3);
        result.priority = static_cast<std::int32_t>(prng_.below(3)) - 1;
        if (chance(4)) {
            result.last_epoch_progress = number(1);
        }
        if (result.mode == CacheMode::kAuto && result.min_bytes == Bytes::zero()) {
            result.fill = chance(4);
            result.filled = result.fill && chance(2) ? result.nodes : std::vector<std::string>{};
        }
        return result;
    }

    Prng prng_;
    bool wild_ = false;
};

}  // namespace stoker::control
