#include <algorithm>
#include <cmath>

#include "operator/core/allocation/claim_table.h"

namespace stoker::control {

namespace {

constexpr double kHair = 1e-7;  // relative, between the first and the last part of a claim
// Where two places have one value it grows where there is room: otherwise it takes the room of one
// that then takes another's, and the next plan moves them all back.
constexpr double kFreeRoom = 1e-4;
// Weight of bytes that hardly matter: those beyond the even share of a job that nothing is known
// of, those that the last epoch has read, those that a job has and can do without, and minimums
// that no quota covers. Nobody else's bytes go for them, but what nobody else wants stays.
constexpr double kHardlyAnything = 1e-6;
constexpr std::uint64_t kEvenParts = 64;  // of a node, with Objective::kEven
constexpr double kGib = 1024.0 * 1024 * 1024;

double to_double(Bytes bytes) {
    return static_cast<double>(bytes.count());
}

double clean_price(double price) {
    return std::isfinite(price) && price > 0 ? price : 0;
}

// Money a byte from the origin costs; 1 where nothing has a price.
double price_of(const PoolView& pool, const DemandDataset& dataset) {
    const double per_request = clean_price(pool.price_per_request);
    const double per_gib = clean_price(pool.price_per_gib);
    const double requests = clean_price(dataset.sample_bytes) > 0 ? 1 / dataset.sample_bytes : 0;
    const double price = per_gib / kGib + per_request * requests;
    return price > 0 ? price : 1 / kGib;
}

class Valuer {
public:
    Valuer(const ClaimTable& table, const Claim& claim, const PieceOptions& options)
        : table_(table),
          claim_(claim),
          options_(options),
          even_share_(even_share(table, claim)) {
        for (const ClaimUser& user : claim.users) {
            ends_of_value_.push_back(end_of_value(user));
        }
    }

    std::vector<ClaimPiece> pieces() {
        const bool even = table_.pool.objective == Objective::kEven;
        std::vector<ClaimPiece> result;
        Bytes begin{};
        for (const Bytes end : even ? even_breaks() : breaks()) {
            double value = even ? 1 / (1 + to_double(begin) / to_double(even_part()))
                                : value_of_users(begin, end);
            value *= 1 - kHair * to_double(begin) / to_double(claim_.limit);
            if (options_.sticky && !even && end < claim_.held + table_.step) {
                value *= table_.hysteresis;
            }
            if (options_.fair) {
                value *= table_.accounts[claim_.account].quota.weight;
            }
            if (!even && end > free_end()) {
                value *= 1 - kFreeRoom;
            }
            if (!result.empty()) {
                value = std::min(value, result.back().value);
            }
            result.push_back({end, value});
            begin = end;
        }
        return result;
    }

private:
    // To where it can grow without anybody else's bytes.
    [[nodiscard]] Bytes free_end() const { return claim_.held + table_.nodes[claim_.node].free; }

    [[nodiscard]] bool has_value(const PlannedJob& job) const {
        return table_.pool.objective == Objective::kCost ||
               job.knowledge != JobKnowledge::kComputeBound;
    }

    [[nodiscard]] Bytes end_of_value(const ClaimUser& user) const {
        return table_.pool.objective == Objective::kCost
                   ? table_.jobs[user.job].curves[user.dataset].dataset()
                   : enough_for(table_, user);
    }

    [[nodiscard]] Bytes even_part() const {
        const std::uint64_t capacity = table_.nodes[claim_.node].capacity.count();
        return Bytes{std::max<std::uint64_t>(capacity / kEvenParts, 1)};
    }

    // Every part of the node's capacity is worth the same to each of its datasets.
    [[nodiscard]] std::vector<Bytes> even_breaks() const {
        const Bytes part = even_part();
        std::vector<Bytes> ends;
        for (Bytes end = part; end < claim_.limit && ends.size() < kEvenParts; end += part) {
            ends.push_back(end);
        }
        ends.push_back(claim_.limit);
        std::erase(ends, Bytes::zero());
        return ends;
    }

    [[nodiscard]] double value_of_users(Bytes begin, Bytes end) const {
        double value = 0;
        for (std::size_t i = 0; i < claim_.users.size(); ++i) {
            const ClaimUser& user = claim_.users[i];
            value += end <= ends_of_value_[i] ? value_of(user, begin, end)
                                              : value_of_keeping(user, begin, end);
            value += value_of_asked(user, end);
        }
        return value;
    }

    std::vector<Bytes> breaks() const {
        std::vector<Bytes> ends = ends_of_value_;
        for (const Bytes end : ends_of_value_) {
            ends.push_back(end - table_.step);
        }
        ends.push_back(claim_.limit);
        for (const ClaimUser& user : claim_.users) {
            const PlannedJob& job = table_.jobs[user.job];
            const std::vector<Bytes> knots =
                job.curves[user.dataset].knots(options_.chord_count, table_.step);
            ends.insert(ends.end(), knots.begin(), knots.end());
            if (job.knowledge == JobKnowledge::kProfiling) {
                ends.push_back(even_share_);
            }
            ends.push_back(user.ahead);
            ends.push_back(user.wanted);
            ends.push_back(user.minimum);
            ends.push_back(user.fixed);
        }
        ends.push_back(claim_.held);
        ends.push_back(free_end());
        const std::uint64_t parts = std::max<std::uint64_t>(options_.chord_count, 1);
        const std::uint64_t exact = claim_.limit.count() / parts + 1;
        const std::uint64_t step = table_.step.count();
        const Bytes part = Bytes{exact / step + (exact % step == 0 ? 0 : 1)} * step;
        for (std::uint64_t i = 1; i < parts && part * i < claim_.limit; ++i) {
            ends.push_back(part * i);
        }
        std::sort(ends.begin(), ends.end());
        ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
        std::erase_if(ends, [&](Bytes end) { return end == Bytes::zero() || end > claim_.limit; });
        return ends;
    }

    // Mean over [begin, end), which no break lies in.
    [[nodiscard]] double value_of(const ClaimUser& user, Bytes begin, Bytes end) const {
        const PlannedJob& job = table_.jobs[user.job];
        if (!has_value(job)) {
            return 0;
        }
        const MissCurve& curve = job.curves[user.dataset];
        // The last byte of those that end the waiting may end it before it is used up.
        const double least = job.origin_share() / user.fetched;
        const double missed = table_.pool.objective == Objective::kCost
                                  ? curve.miss_mass(end)
                                  : std::max(curve.miss_mass(end), least);
        const double saved = curve.miss_mass(begin) - missed;
        double value =
            job.weight * job.doubt * user.rate * user.fetched * saved / to_double(end - begin);
        if (table_.pool.objective == Objective::kCost) {
            value *= price_of(table_.pool, job.demand->datasets[user.dataset]);
        }
        if (job.knowledge == JobKnowledge::kProfiling && begin >= even_share_) {
            value *= kHardlyAnything;
        }
        if (begin >= user.ahead) {
            value *= kHardlyAnything;
        }
        return value;
    }

    // Value of resident bytes that are no longer needed: fewer requests to the origin.
    [[nodiscard]] double value_of_keeping(const ClaimUser& user, Bytes begin, Bytes end) const {
        const PlannedJob& job = table_.jobs[user.job];
        if (!has_value(job) || end > user.wanted) {
            return 0;
        }
        const MissCurve& curve = job.curves[user.dataset];
        const double saved = curve.miss_mass(begin) - curve.miss_mass(end);
        return kHardlyAnything * job.weight * user.rate * user.fetched * saved /
               to_double(end - begin);
    }

    // Value of a minimum, or of the bytes of mode Fixed, where no quota covers it.
    [[nodiscard]] double value_of_asked(const ClaimUser& user, Bytes end) const {
        const Bytes asked = std::max(user.minimum, user.fixed);
        return end > asked ? 0
                           : kHardlyAnything * table_.jobs[user.job].weight *
                                 table_.jobs[user.job].ingest / to_double(asked);
    }

    const ClaimTable& table_;
    const Claim& claim_;
    const PieceOptions& options_;
    Bytes even_share_;
    std::vector<Bytes> ends_of_value_;  // one a user
};

}  // namespace

Bytes useful_end(const ClaimTable& table, const Claim& claim) {
    const Objective objective = table.pool.objective;
    Bytes result{};
    for (const ClaimUser& user : claim.users) {
        const PlannedJob& job = table.jobs[user.job];
        Bytes end = std::min({user.wanted, user.most, user.ahead});
        if (objective != Objective::kCost && objective != Objective::kEven) {
            const bool waits = job.knowledge != JobKnowledge::kComputeBound;
            end = waits ? std::min(end, enough_for(table, user)) : Bytes::zero();
        }
        if (objective != Objective::kEven && job.knowledge == JobKnowledge::kProfiling) {
            end = std::min(end, even_share(table, claim));
        }
        result = std::max(result, end);
    }
    return result;
}

Bytes even_share(const ClaimTable& table, const Claim& claim) {
    const PlannedNode& node = table.nodes[claim.node];
    return Bytes{(node.capacity - node.idle).count() / node.claims.size()};
}

std::vector<ClaimPiece> value_pieces(
    const ClaimTable& table, const Claim& claim, const PieceOptions& options) {
    return Valuer{table, claim, options}.pieces();
}

}  // namespace stoker::control
