#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "operator/core/allocation/allocation_view.h"

// What spec.cache.minBytes promises, from the promise alone (docs/design/allocation.md, step 1) and
// without a line of the planner: to jobs of higher priority first, then to older ones, then by
// name, the same on each of a job's nodes, at most what the dataset has and maxBytes leaves, as far
// as node and nominal quota have room. Poured out grain by grain, so for small worlds. Jobs have
// one dataset and mode Auto; nothing is stopped, nobody's last epoch, no idle bytes.
namespace stoker::control {

struct PromisedMinimums {
    using Place = std::pair<std::string, std::string>;  // node, uid

    std::map<Place, std::uint64_t> places;
    std::map<ObjectKey, std::uint64_t> jobs;  // over all nodes
};

class MinimumsOracle {
public:
    // Of one pool's view. `grain`: bytes that are poured at once.
    explicit MinimumsOracle(const AllocationView& view, std::uint64_t grain = 1)
        : grain_(grain) {
        for (const PoolNode& node : view.nodes) {
            room_[node.node] = node.capacity.count();
        }
        for (const QuotaView& quota : view.quotas) {
            nominal_[quota.ns] = quota.nominal.count();
        }
        std::vector<const Demand*> jobs;
        for (const Demand& job : view.demands) {
            jobs.push_back(&job);
            for (const std::string& node : job.nodes) {
                payers_[{node, job.datasets[0].uid}].insert(job.job.ns);
            }
        }
        std::sort(jobs.begin(), jobs.end(), [](const Demand* a, const Demand* b) {
            return std::tie(b->priority, a->created_at, a->job) <
                   std::tie(a->priority, b->created_at, b->job);
        });
        for (const Demand* job : jobs) {
            serve(*job);
        }
    }

    [[nodiscard]] const PromisedMinimums& promised() const { return promised_; }

private:
    using Place = PromisedMinimums::Place;

    struct Need {
        Place place;
        std::uint64_t left = 0;
        std::uint64_t given = 0;
        std::uint64_t all = 0;
    };

    void serve(const Demand& job) {
        std::vector<std::string> nodes;  // of the pool
        for (const std::string& node : job.nodes) {
            if (room_.contains(node)) {
                nodes.push_back(node);
            }
        }
        std::sort(nodes.begin(), nodes.end());
        std::vector<Need> needs;
        std::map<Place, std::uint64_t> goals;
        for (const std::string& node : nodes) {
            const Place place{node, job.datasets[0].uid};
            const std::uint64_t goal = std::min(
                {job.min_bytes.count() / nodes.size(),
                 job.max_bytes.value_or(Bytes::unlimited()).count() / nodes.size(),
                 job.datasets[0].total->count()});
            goals[place] = goal;
            const std::uint64_t have = promised_.places[place];
            const std::uint64_t left = goal > have ? std::min(goal - have, room_[node]) : 0;
            needs.push_back({place, left, 0, left});
        }
        while (pour(needs)) {
        }
        for (const auto& [place, goal] : goals) {
            promised_.jobs[job.job] += std::min(goal, promised_.places[place]);
        }
    }

    // A grain to whoever got least so far, of those the one that lacks most, of those the last.
    bool pour(std::vector<Need>& needs) {
        Need* next = nullptr;
        for (Need& need : needs) {
            const bool open = need.left > 0 && fits(need.place, std::min(grain_, need.left));
            if (open && (next == nullptr ||
                         std::tie(need.given, next->all) <= std::tie(next->given, need.all))) {
                next = &need;
            }
        }
        if (next == nullptr) {
            return false;
        }
        const std::uint64_t bytes = std::min(grain_, next->left);
        next->left -= bytes;
        next->given += bytes;
        room_[next->place.first] -= bytes;
        promised_.places[next->place] += bytes;
        return true;
    }

    [[nodiscard]] bool fits(const Place& place, std::uint64_t bytes) const {
        if (room_.at(place.first) < bytes) {
            return false;
        }
        for (const std::string& ns : payers_.at(place)) {
            const auto quota = nominal_.find(ns);
            if (quota != nominal_.end() && charged(ns, place, bytes) > quota->second) {
                return false;
            }
        }
        return true;
    }

    // What the namespace pays if `place` has so many bytes more: its part of each dataset.
    [[nodiscard]] std::uint64_t charged(
        const std::string& ns, const Place& place, std::uint64_t bytes) const {
        std::uint64_t sum = 0;
        for (const auto& [where, payers] : payers_) {
            if (payers.contains(ns)) {
                const auto has = promised_.places.find(where);
                const std::uint64_t all = (has == promised_.places.end() ? 0 : has->second) +
                                          (where == place ? bytes : 0);
                sum += (all + payers.size() - 1) / payers.size();
            }
        }
        return sum;
    }

    std::uint64_t grain_;
    std::map<std::string, std::uint64_t> room_;
    std::map<std::string, std::uint64_t> nominal_;
    std::map<Place, std::set<std::string>> payers_;
    PromisedMinimums promised_;
};

inline PromisedMinimums promised_minimums(const AllocationView& view, std::uint64_t grain = 1) {
    return MinimumsOracle{view, grain}.promised();
}

}  // namespace stoker::control
