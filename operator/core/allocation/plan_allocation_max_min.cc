#include <algorithm>
#include <cmath>
#include <optional>

#include "operator/core/allocation/plan_allocation_state.h"

namespace stoker::control {

namespace {

// Where nobody has measured it: the share of a job's bytes that the origin can give in time.
constexpr double kUnknownOriginShare = 0.25;
constexpr int kHalvings = 44;
constexpr int kRoundsMax = 8;

double origin_share(const PlannedJob& job) {
    return job.origin > 0 && job.knowledge != JobKnowledge::kProfiling ? job.origin_share()
                                                                       : kUnknownOriginShare;
}

struct Overfull {
    std::vector<bool> nodes;
    std::vector<bool> accounts;
    std::vector<bool> in_the_way;  // nodes, of what is owed to others; or empty
    bool common = false;
    bool any = false;
};

class Raiser {
public:
    Raiser(
        const ClaimTable& table,
        const Rooms& rooms,
        const ClaimBytes& given,
        const Guarantee* guarantee)
        : table_(table),
          rooms_(rooms),
          given_(given),
          guarantee_(guarantee),
          frozen_(table.jobs.size(), 0),
          is_frozen_(table.jobs.size(), false) {
        for (std::size_t i = 0; i < table.jobs.size(); ++i) {
            is_frozen_[i] = table.jobs[i].knowledge == JobKnowledge::kComputeBound ||
                            table.jobs[i].demand->mode == CacheMode::kFixed;
        }
    }

    ClaimBytes run() {
        for (int round = 0; round < kRoundsMax && !all_frozen(); ++round) {
            if (!overfull(1).any) {
                return needs(1);
            }
            double low = 0;
            double high = 1;
            for (int i = 0; i < kHalvings; ++i) {
                const double middle = (low + high) / 2;
                (overfull(middle).any ? high : low) = middle;
            }
            freeze(overfull(high), low);
        }
        return needs(0);
    }

private:
    [[nodiscard]] bool all_frozen() const {
        return std::all_of(is_frozen_.begin(), is_frozen_.end(), [](bool is) { return is; });
    }

    // What each claim needs for `level` of those that are not frozen, and for the level of those
    // that are.
    [[nodiscard]] ClaimBytes needs(double level) const {
        ClaimBytes result = given_;
        for (std::size_t i = 0; i < result.size(); ++i) {
            for (const ClaimUser& user : table_.claims[i].users) {
                const double own = is_frozen_[user.job] ? frozen_[user.job] : level;
                result[i] = std::max(result[i], need_of(user, own));
            }
        }
        return result;
    }

    [[nodiscard]] Bytes need_of(const ClaimUser& user, double level) const {
        if (level <= 0) {
            return Bytes::zero();
        }
        const PlannedJob& job = table_.jobs[user.job];
        const Bytes all =
            job.curves[user.dataset].bytes_for(origin_share(job) / (level * user.fetched));
        return std::min({all, user.wanted, user.most});
    }

    [[nodiscard]] Overfull overfull(double level) const {
        const ClaimBytes bytes = needs(level);
        std::vector<Bytes> nodes(table_.nodes.size());
        std::vector<Bytes> accounts(table_.accounts.size());
        Bytes all{};  // out of the common room
        for (std::size_t i = 0; i < bytes.size(); ++i) {
            nodes[table_.claims[i].node] += bytes[i] - given_[i];
            accounts[table_.claims[i].account] += bytes[i] - given_[i];
        }
        Overfull result;
        for (std::size_t i = 0; i < nodes.size(); ++i) {
            result.nodes.push_back(nodes[i].count() > rooms_.nodes[i]);
            result.any |= result.nodes.back();
        }
        for (std::size_t i = 0; i < accounts.size(); ++i) {
            result.accounts.push_back(accounts[i].count() > rooms_.accounts[i]);
            result.any |= result.accounts.back();
            all += accounts[i] - Bytes{rooms_.own[i]};
        }
        result.common = all.count() > rooms_.common;
        result.any |= result.common;
        if (guarantee_ != nullptr && !result.any) {
            result.in_the_way = guarantee_->nodes_in_the_way(bytes);
            result.any = !result.in_the_way.empty();
        }
        return result;
    }

    // Those with a claim where there is no more room stay at `level`.
    void freeze(const Overfull& where, double level) {
        for (const Claim& claim : table_.claims) {
            const bool stuck = where.nodes[claim.node] || where.common ||
                               where.accounts[claim.account] ||
                               (!where.in_the_way.empty() && where.in_the_way[claim.node]);
            for (const ClaimUser& user : claim.users) {
                if (stuck && !is_frozen_[user.job]) {
                    is_frozen_[user.job] = true;
                    frozen_[user.job] = level;
                }
            }
        }
    }

    const ClaimTable& table_;
    const Rooms& rooms_;
    const ClaimBytes& given_;
    const Guarantee* guarantee_;
    std::vector<double> frozen_;  // level of those that are frozen; 0: what they have
    std::vector<bool> is_frozen_;
};

}  // namespace

ClaimBytes raise_the_slowest(
    const ClaimTable& table,
    const Rooms& rooms,
    const ClaimBytes& given,
    const Guarantee* guarantee) {
    return Raiser{table, rooms, given, guarantee}.run();
}

}  // namespace stoker::control
