#include "operator/core/allocation/max_min.h"

#include <algorithm>
#include <optional>

#include "operator/core/allocation/user_curve.h"

namespace stoker::control {

namespace {

// Share of a job's bytes that the origin can give in time; assumed while unmeasured.
constexpr double kUnknownOriginShare = 0.25;
constexpr int kHalvings = 44;
constexpr int kRoundsMax = 8;

double origin_share(const PlannedJob& job) {
    return job.origin > 0 && job.knowledge != JobKnowledge::kProfiling ? job.origin_share()
                                                                       : kUnknownOriginShare;
}

struct Overfull {
    std::vector<bool> nodes;  // full, or needed for owed bytes
    std::vector<bool> accounts;
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
          frozen_(table.jobs.size()) {
        for (std::size_t i = 0; i < table.jobs.size(); ++i) {
            if (table.jobs[i].knowledge == JobKnowledge::kComputeBound || table.jobs[i].is_fill() ||
                table.jobs[i].demand->mode == CacheMode::kFixed) {
                frozen_[i] = 0;
            }
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
        return std::ranges::none_of(frozen_, [](const auto& level) { return !level; });
    }

    // Bytes of each claim with which every job reads at `level`, a share of its full speed; jobs
    // that cannot be raised further (frozen_) stay at their level.
    [[nodiscard]] ClaimBytes needs(double level) const {
        ClaimBytes result = given_;
        for (std::size_t i = 0; i < result.size(); ++i) {
            for (const ClaimUser& user : table_.claims[i].users) {
                const double own = frozen_[user.job].value_or(level);
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
            UserCurve{job, user}.bytes_for(origin_share(job) / (level * user.fetched));
        return std::min({all, user.wanted, user.most});
    }

    [[nodiscard]] Overfull overfull(double level) const {
        const ClaimBytes bytes = needs(level);
        std::vector<Bytes> nodes(table_.nodes.size());
        std::vector<Bytes> accounts(table_.accounts.size());
        Bytes all{};  // taken from the common room
        for (std::size_t i = 0; i < bytes.size(); ++i) {
            nodes[table_.claims[i].node] += bytes[i] - given_[i];
            accounts[table_.claims[i].account] += bytes[i] - given_[i];
        }
        Overfull result;
        for (std::size_t i = 0; i < nodes.size(); ++i) {
            result.nodes.push_back(nodes[i] > rooms_.nodes[i]);
            result.any |= result.nodes.back();
        }
        for (std::size_t i = 0; i < accounts.size(); ++i) {
            result.accounts.push_back(accounts[i] > rooms_.accounts[i]);
            result.any |= result.accounts.back();
            all += accounts[i] - rooms_.own[i];
        }
        result.common = all > rooms_.common;
        result.any |= result.common;
        if (guarantee_ != nullptr && !result.any) {
            result.nodes = guarantee_->nodes_in_the_way(bytes);
            result.any = !result.nodes.empty();
        }
        return result;
    }

    // Freezes jobs with a claim where no room is left; they stay at `level`.
    void freeze(const Overfull& where, double level) {
        for (const Claim& claim : table_.claims) {
            const bool stuck =
                where.nodes[claim.node] || where.common || where.accounts[claim.account];
            for (const ClaimUser& user : claim.users) {
                if (stuck && !frozen_[user.job]) {
                    frozen_[user.job] = level;
                }
            }
        }
    }

    const ClaimTable& table_;
    const Rooms& rooms_;
    const ClaimBytes& given_;
    const Guarantee* guarantee_;
    std::vector<std::optional<double>> frozen_;  // level by job; none: it still rises
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
