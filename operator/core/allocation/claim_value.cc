#include "operator/core/allocation/claim_value.h"

#include <algorithm>
#include <cmath>

#include "operator/core/allocation/user_curve.h"

namespace stoker::control {

namespace {

constexpr double kHair = 1e-7;  // relative value difference between a claim's first and last piece
// Relative bonus for growth into free space. Without it, a claim with a choice of nodes may
// displace another claim, which displaces a third, and the next plan moves all of them back.
constexpr double kFreeRoom = 1e-4;
// Factor for bytes with almost no value: bytes of a job without a profile beyond even_share(),
// bytes already read in the last epoch, bytes that a job holds but does not need, and requested
// minimums beyond the namespace's quota. They displace no other job's bytes, but may use idle
// space.
constexpr double kHardlyAnything = 1e-6;
// Relative value difference between the first and the last byte of the largest node, in value_at().
constexpr double kConcave = 1e-5;
constexpr std::uint64_t kEvenParts = 64;  // parts per node, with Objective::kEven
constexpr double kPriceMax = 1e15;        // a higher price is an error
constexpr double kGib = 1024.0 * 1024 * 1024;

double to_double(Bytes bytes) {
    return static_cast<double>(bytes.count());
}

double clean_price(double price) {
    return price > 0 && price <= kPriceMax ? price : 0;
}

// Price of one byte from the origin, in the unit of the pool's prices; without prices, 1 per GiB.
double price_of(const PoolView& pool, const DemandDataset& dataset) {
    const double per_request = clean_price(pool.price_per_request);
    const double per_gib = clean_price(pool.price_per_gib);
    const double requests = dataset.sample_bytes >= 1 ? 1 / dataset.sample_bytes : 0;
    const double price = per_gib / kGib + per_request * requests;
    return price > 0 ? price : 1 / kGib;
}

class Valuer {
public:
    Valuer(const ClaimTable& table, const Claim& claim, const PieceOptions& options)
        : table_(table),
          claim_(claim),
          options_(options),
          even_share_(even_share(table, claim)) {}

    std::vector<ValuePiece> pieces() {
        const bool even = table_.pool.objective == Objective::kEven;
        const std::vector<Bytes> ends = even ? even_breaks() : breaks();
        std::vector<ValuePiece> result;
        result.reserve(ends.size());
        Bytes begin{};
        for (const Bytes end : ends) {
            double value = even ? 1 / (1 + to_double(begin) / to_double(even_part()))
                                : value_of_users(begin, end);
            value *= 1 - kHair * to_double(begin) / to_double(claim_.limit);
            if (!even && end < claim_.planned + table_.step) {
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

    // The sum of value_of_users() up to `amount`.
    [[nodiscard]] double value_at(Bytes amount) const {
        double sum = 0;
        Bytes begin{};
        for (const Bytes end : exact_breaks(amount)) {
            const double middle = (to_double(begin) + to_double(end)) / 2;
            const double level = 1 - kConcave * middle / to_double(table_.largest);
            sum += value_of_users(begin, end) * to_double(end - begin) * std::max(level, 0.0);
            begin = end;
        }
        return sum * std::max(table_.accounts[claim_.account].quota.weight, kHardlyAnything);
    }

private:
    // Amounts up to `amount` at which the value of a byte changes for another reason than the
    // curve; the last is `amount`.
    [[nodiscard]] std::vector<Bytes> exact_breaks(Bytes amount) const {
        std::vector<Bytes> ends{amount};
        for (const ClaimUser& user : claim_.users) {
            const UserCurve curve{table_.jobs[user.job], user};
            const Bytes all = table_.jobs[user.job].curves[user.dataset].dataset();
            ends.insert(
                ends.end(),
                {end_of_value(user),
                 curve.part(),
                 all,
                 user.ahead,
                 std::max(user.minimum, user.fixed),
                 even_share_});
        }
        std::sort(ends.begin(), ends.end());
        ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
        std::erase_if(ends, [&](Bytes end) { return end == Bytes::zero() || end > amount; });
        return ends;
    }

    // Size up to which the claim can grow without taking other claims' bytes.
    [[nodiscard]] Bytes free_end() const {
        return claim_.planned_for_jobs() + table_.nodes[claim_.node].free;
    }

    [[nodiscard]] Bytes end_of_value(const ClaimUser& user) const {
        return table_.pool.objective == Objective::kCost
                   ? UserCurve{table_.jobs[user.job], user}.part()
                   : user.enough;
    }

    [[nodiscard]] Bytes even_part() const {
        const std::uint64_t capacity = table_.nodes[claim_.node].capacity.count();
        return Bytes{std::max<std::uint64_t>(capacity / kEvenParts, 1)};
    }

    // With Objective::kEven the values do not depend on the dataset: the n-th piece of each claim
    // on the node has the same value.
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
        for (const ClaimUser& user : claim_.users) {
            value += value_of(user, begin, end) + value_of_asked(user, end);
        }
        return value;
    }

    // Boundaries of the curves' pieces, and points where the value of a byte changes.
    [[nodiscard]] std::vector<Bytes> breaks() const {
        std::vector<Bytes> ends{claim_.limit, claim_.planned, free_end()};
        for (const ClaimUser& user : claim_.users) {
            const Bytes end = end_of_value(user);
            const PlannedJob& job = table_.jobs[user.job];
            const bool unknown = job.knowledge == JobKnowledge::kProfiling;
            const std::vector<Bytes> knots =
                UserCurve{job, user}.knots(options_.chord_count, table_.step);
            ends.insert(ends.end(), knots.begin(), knots.end());
            ends.insert(
                ends.end(),
                {end,
                 end - table_.step,
                 user.ahead,
                 user.wanted,
                 user.minimum,
                 user.fixed,
                 unknown ? even_share_ : end});
        }
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

    // Mean value over [begin, end), which contains no break. Resident bytes that are no longer
    // needed still save requests to the origin.
    [[nodiscard]] double value_of(const ClaimUser& user, Bytes begin, Bytes end) const {
        const PlannedJob& job = table_.jobs[user.job];
        const bool is_cost = table_.pool.objective == Objective::kCost;
        const bool is_needed = end <= end_of_value(user);
        const bool has_value = is_cost || job.knowledge != JobKnowledge::kComputeBound;
        if (!has_value || (!is_needed && end > user.wanted && !options_.lasting)) {
            return 0;
        }
        const UserCurve curve{job, user};
        if (begin >= curve.part() && user.owners > 1) {
            return value_of_copies(user, begin, end);
        }
        // A part of these bytes may suffice to end the job's waiting; the rest saves no time.
        const double least = is_needed && !is_cost ? job.origin_share() / user.fetched : 0;
        const double saved = curve.miss_mass(begin) - std::max(curve.miss_mass(end), least);
        double value = job.weight * user.rate * user.fetched * saved / to_double(end - begin);
        if (!is_needed) {
            return kHardlyAnything * value;
        }
        value *= job.doubt;
        if (is_cost) {
            value *= price_of(table_.pool, job.demand->datasets[user.dataset]);
        }
        if (job.knowledge == JobKnowledge::kProfiling && begin >= even_share_) {
            value *= kHardlyAnything;
        }
        return begin >= user.ahead ? kHardlyAnything * value : value;
    }

    // Value of copies of other owners' samples: they save the node's reads of samples for which the
    // owners have no room. A copy of a sample that its owner has saves no origin bytes.
    [[nodiscard]] double value_of_copies(const ClaimUser& user, Bytes begin, Bytes end) const {
        const PlannedJob& job = table_.jobs[user.job];
        if (end > job.curves[user.dataset].dataset()) {
            return 0;
        }
        const double price = table_.pool.objective == Objective::kCost
                                 ? price_of(table_.pool, job.demand->datasets[user.dataset])
                                 : 1;
        const double ahead = begin >= user.ahead ? kHardlyAnything : 1;
        return job.weight * job.doubt * price * ahead * user.own_rate * user.fetched *
               std::max(user.lacking, kHardlyAnything) /
               to_double(job.curves[user.dataset].dataset());
    }

    // Value of a minimum, or of bytes in mode Fixed, that no quota covers.
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
};

}  // namespace

Bytes useful_end(const ClaimTable& table, const Claim& claim) {
    const Objective objective = table.pool.objective;
    Bytes result{};
    for (const ClaimUser& user : claim.users) {
        const PlannedJob& job = table.jobs[user.job];
        if (job.is_fill()) {
            continue;
        }
        Bytes end = std::min({user.wanted, user.most, user.ahead});
        if (objective != Objective::kCost && objective != Objective::kEven) {
            const bool waits = job.knowledge != JobKnowledge::kComputeBound;
            end = waits ? std::min(end, user.enough) : Bytes::zero();
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
    return Bytes{(node.capacity - node.idle).count() / std::max<std::size_t>(node.read_claims, 1)};
}

std::vector<ValuePiece> value_pieces(
    const ClaimTable& table, const Claim& claim, const PieceOptions& options) {
    return Valuer{table, claim, options}.pieces();
}

double value_at(const ClaimTable& table, const Claim& claim, Bytes amount) {
    PieceOptions options;
    options.lasting = true;
    return Valuer{table, claim, options}.value_at(amount);
}

double fetched_with(const ClaimTable& table, const ClaimUser& user, Bytes cached) {
    return UserCurve{table.jobs[user.job], user}.miss_mass(cached) * user.fetched;
}

double saved_by_next(const ClaimTable& table, const ClaimUser& user, Bytes cached) {
    return user.rate * user.fetched * UserCurve{table.jobs[user.job], user}.marginal(cached);
}

double predict_rate(
    const ClaimTable& table, std::size_t job, const ClaimBytes& cached, double origin) {
    const double ingest = table.jobs[job].ingest;
    double speed = 1;
    for (const std::size_t i : table.jobs[job].claims) {
        const double fetched = fetched_with(table, table.claims[i].user(job), cached[i]);
        if (origin > 0 && fetched > 0) {
            speed = std::min(speed, origin / ingest / fetched);
        }
    }
    return ingest * speed;
}

}  // namespace stoker::control
