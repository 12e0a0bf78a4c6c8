#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "operator/core/allocation/allocation_view.h"

// Oracle for spec.cache.minBytes (docs/design/allocation.md, step 1), computed without the planner's
// code. Order: jobs of the dataset's own namespace before guests, then higher priority, then older,
// then by name. A job gets the same on each of its nodes, at most the dataset's size and maxBytes,
// within the room of the node and of the nominal quota of the dataset's namespace. The oracle gives
// out bytes in pieces of `grain`, so use small clusters. Jobs have one dataset and mode Auto; none
// is stopped or in its last epoch, and there are no idle bytes.
namespace stoker::control {

struct PromisedMinimums {
    using Place = std::pair<std::string, std::string>;  // node, uid

    std::map<Place, std::uint64_t> places;
    std::map<ObjectKey, std::uint64_t> jobs;  // sum over all nodes
};

class MinimumsOracle {
public:
    // `view` holds one pool. `grain`: bytes given out at once.
    explicit MinimumsOracle(const AllocationView& view, std::uint64_t grain = 1)
        : grain_(grain) {
        for (const PoolNode& node : view.nodes) {
            room_[node.node] = node.capacity.count();
        }
        std::vector<const Demand*> jobs;
        for (const Demand& job : view.demands) {
            jobs.push_back(&job);
            const Bytes nominal =
                view.pools.empty() ? Bytes::zero() : view.pools[0].default_quota.nominal;
            nominal_room_[payer_of(job)] = nominal.count();
        }
        for (const QuotaView& quota : view.quotas) {
            nominal_room_[quota.ns] = quota.nominal.count();
        }
        std::sort(jobs.begin(), jobs.end(), [](const Demand* a, const Demand* b) {
            return std::tie(b->priority, a->created_at, a->job) <
                   std::tie(a->priority, b->created_at, b->job);
        });
        for (const bool guest : {false, true}) {
            for (const Demand* job : jobs) {
                if ((payer_of(*job) != job->job.ns) == guest) {
                    serve(*job);
                }
            }
        }
    }

    static const std::string& payer_of(const Demand& job) {
        return job.datasets[0].ns.empty() ? job.job.ns : job.datasets[0].ns;
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
        while (pour(needs, nominal_room_[payer_of(job)])) {
        }
        for (const auto& [place, goal] : goals) {
            promised_.jobs[job.job] += std::min(goal, promised_.places[place]);
        }
    }

    // Gives a grain to the need that has got the least; of equals: the largest total, then the
    // last.
    bool pour(std::vector<Need>& needs, std::uint64_t& nominal_room) {
        Need* next = nullptr;
        for (Need& need : needs) {
            const std::uint64_t bytes = std::min(grain_, need.left);
            const bool open =
                bytes > 0 && room_.at(need.place.first) >= bytes && nominal_room >= bytes;
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
        nominal_room -= bytes;
        promised_.places[next->place] += bytes;
        return true;
    }

    std::uint64_t grain_;
    std::map<std::string, std::uint64_t> room_;
    std::map<std::string, std::uint64_t> nominal_room_;  // by namespace
    PromisedMinimums promised_;
};

inline PromisedMinimums promised_minimums(const AllocationView& view, std::uint64_t grain = 1) {
    return MinimumsOracle{view, grain}.promised();
}

}  // namespace stoker::control
