#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "common/base/prng.h"
#include "operator/core/allocation/allocation_view.h"

// The random clusters of plan_allocation_property_test.cc.
namespace stoker::control {

inline std::string name(const char* prefix, std::uint64_t number) {
    return prefix + std::to_string(number);
}

// Small numbers, so that limits bind often.
struct World {
    // `shared`: every namespace may use every dataset, and quotas borrow and lend. A dataset's uid
    // begins with its namespace.
    explicit World(std::uint64_t seed, bool shared = false)
        : prng(seed),
          is_shared(shared) {
        for (std::uint64_t node = 0; node < 1 + prng.below(4); ++node) {
            for (std::uint64_t pool = 0; pool < 1 + prng.below(2); ++pool) {
                view.nodes.push_back({name("p", pool), name("n", node), Bytes{prng.below(100)}});
            }
        }
        for (std::uint64_t pool = 0; pool < 2; ++pool) {
            if (prng.below(6) == 0) {
                view.pools.push_back({name("p", pool), static_cast<StopPolicy>(prng.below(3))});
            }
            for (std::uint64_t ns = 0; ns < 3; ++ns) {
                if (prng.below(2) == 0) {
                    view.quotas.push_back(
                        {name("ns", ns),
                         name("p", pool),
                         Bytes{prng.below(150)},
                         prng.below(8) == 0 ? StopPolicy::kHold : StopPolicy::kNone,
                         Bytes{is_shared ? prng.below(80) : 0},
                         Bytes{is_shared ? prng.below(80) : 0},
                         1,
                         30,
                         static_cast<ReclaimPolicy>(prng.below(3))});
                }
            }
        }
        const std::uint64_t jobs = is_shared ? 2 + prng.below(6) : prng.below(6);
        for (std::uint64_t job = 0; job < jobs; ++job) {
            add_job(job);
        }
        for (std::uint64_t i = 0; i < prng.below(5); ++i) {
            add_holding();
        }
    }

    // Some datasets are pooled, also over nodes that no job of the dataset runs on.
    void add_peers() {
        for (const auto& [uid, size] : sizes) {
            PeerNodes group{uid, {}};
            for (std::uint64_t node = 0; node < 5; ++node) {
                if (prng.below(3) != 0) {
                    group.nodes.push_back(name("n", node));
                }
            }
            if (prng.below(3) == 0) {
                view.peers.push_back(std::move(group));
            }
        }
    }

    void add_job(std::uint64_t number) {
        Demand demand;
        const std::uint64_t ns = prng.below(3);
        demand.job = {name("ns", ns), name("job", number)};
        demand.created_at = WallTime{std::chrono::seconds{prng.below(3)}};
        demand.pool = name("p", is_shared ? 0 : prng.below(2));
        demand.mode = prng.below(3) == 0 ? CacheMode::kFixed : CacheMode::kAuto;
        if (demand.mode == CacheMode::kFixed || prng.below(2) == 0) {
            demand.max_bytes = Bytes{1 + prng.below(120)};
        }
        demand.min_bytes = Bytes{prng.below(2) * prng.below(40)};
        for (std::uint64_t i = 0; i < 1 + prng.below(2); ++i) {
            const bool known = prng.below(5) != 0;
            const std::uint64_t owner = is_shared ? prng.below(2) : ns;
            const std::string uid = name("ns", owner) + name("d", prng.below(3));
            demand.datasets.push_back(
                {name("s", i), uid, known ? std::optional(size_of(uid)) : std::nullopt});
            demand.datasets.back().ns = name("ns", owner);
        }
        for (std::uint64_t node = 0; node < 5; ++node) {
            if (prng.below(2) == 0) {
                demand.nodes.push_back(name("n", node));
            }
        }
        if (is_shared && prng.below(3) != 0) {
            demand.rates = JobRates{100 * prng.unit(), 50 * prng.unit(), prng.unit(), false};
        }
        if (prng.below(5) == 0) {
            make_fill(demand);
        }
        view.demands.push_back(std::move(demand));
    }

    static void make_fill(Demand& demand) {
        demand.fill = true;
        demand.mode = CacheMode::kAuto;
        demand.max_bytes.reset();
        demand.min_bytes = Bytes::zero();
        demand.rates.reset();
    }

    void add_holding() {
        if (view.nodes.empty()) {
            return;
        }
        const PoolNode& place = view.nodes[prng.below(view.nodes.size())];
        const std::string uid = name("ns", prng.below(3)) + name("d", prng.below(4));
        for (const Holding& other : view.holdings) {
            if (other.pool == place.pool && other.node == place.node && other.dataset_uid == uid) {
                return;
            }
        }
        view.holdings.push_back(
            {place.pool, place.node, uid, Bytes{prng.below(60)}, Bytes{prng.below(60)}});
    }

    // Makes a GiB and a few random bytes of each byte; segments have 64 MiB.
    void enlarge() {
        const auto larger = [this](Bytes& bytes) {
            bytes = bytes * gib(1).count() + Bytes{prng.below(1 + bytes.count() * 1000)};
        };
        for (PoolNode& node : view.nodes) {
            larger(node.capacity);
        }
        for (QuotaView& quota : view.quotas) {
            larger(quota.nominal);
            larger(quota.borrowing);
            larger(quota.lending);
        }
        for (auto& entry : sizes) {
            larger(entry.second);
        }
        for (Demand& demand : view.demands) {
            larger(demand.min_bytes);
            if (demand.max_bytes) {
                larger(*demand.max_bytes);
            }
            for (DemandDataset& dataset : demand.datasets) {
                dataset.total = dataset.total ? std::optional(sizes.at(dataset.uid)) : std::nullopt;
            }
        }
        for (Holding& holding : view.holdings) {
            larger(holding.resident);
            larger(holding.granted);
        }
        view.step = mib(64);
    }

    Bytes size_of(const std::string& uid) {
        const auto [entry, is_new] = sizes.emplace(uid, Bytes{});
        if (is_new) {
            entry->second = Bytes{prng.below(90)};
        }
        return entry->second;
    }

    Prng prng;
    bool is_shared;
    AllocationView view;
    std::map<std::string, Bytes> sizes;
};

}  // namespace stoker::control
