#include <algorithm>
#include <cmath>

#include "operator/core/allocation/level_fill.h"
#include "operator/core/allocation/plan_allocation_state.h"

namespace stoker::control {

namespace {

// Misses are counted in sixteenths, rounded up, so that limits do not change with every byte.
constexpr double kMissSteps = 16;

double miss_now(const ClaimTable& table, const ClaimUser& user, Bytes cached) {
    const double missed = table.jobs[user.job].curves[user.dataset].miss_mass(cached);
    return std::ceil(missed * kMissSteps) / kMissSteps * user.fetched;
}

// What each user of each claim needs from the origin, bytes/s, as the caches are now.
std::vector<double> needs_of(
    const ClaimTable& table, const PoolDecision& decision, std::size_t job) {
    std::vector<double> needs;
    for (const std::size_t i : table.jobs[job].claims) {
        const Claim& claim = table.claims[i];
        for (const ClaimUser& user : claim.users) {
            if (user.job == job) {
                const Bytes cached = std::min(claim.resident, decision.granted[i]);
                needs.push_back(user.rate * miss_now(table, user, cached));
            }
        }
    }
    return needs;
}

double sum(const std::vector<double>& values) {
    double result = 0;
    for (const double value : values) {
        result += value;
    }
    return result;
}

// Max-min: everybody the same, but nobody more than they need.
std::vector<double> level(const std::vector<double>& needs, double budget) {
    std::vector<Bytes> whole;
    for (const double need : needs) {
        whole.emplace_back(static_cast<std::uint64_t>(std::ceil(need)));
    }
    std::vector<double> result;
    for (const Bytes share : level_fill(whole, Bytes{static_cast<std::uint64_t>(budget)})) {
        result.push_back(static_cast<double>(share.count()));
    }
    return result;
}

// What each job may count on once the plan is carried out.
void predict_origin(const ClaimTable& table, double budget, PoolDecision& decision) {
    std::vector<double> needs;
    for (std::size_t job = 0; job < table.jobs.size(); ++job) {
        double need = 0;
        for (const std::size_t i : table.jobs[job].claims) {
            for (const ClaimUser& user : table.claims[i].users) {
                // Another user counts the same dataset among its own.
                if (user.job == job) {
                    const MissCurve& curve = table.jobs[job].curves[user.dataset];
                    need += user.rate * curve.miss_mass(decision.target[i]) * user.fetched;
                }
            }
        }
        needs.push_back(need);
    }
    const std::vector<double> shares = level(needs, budget);
    for (std::size_t job = 0; job < shares.size(); ++job) {
        // Nobody waits: the origin gives what is asked for.
        decision.job_origin[job] =
            shares[job] + 1 >= needs[job] ? table.jobs[job].ingest : shares[job];
    }
}

}  // namespace

void share_bandwidth(const ClaimTable& table, PoolDecision& decision) {
    decision.origin_limit.assign(table.claims.size(), 0);
    decision.job_origin.clear();
    for (const PlannedJob& job : table.jobs) {
        decision.job_origin.push_back(job.origin);
    }
    const double budget = table.pool.origin_bytes_per_second;
    if (!std::isfinite(budget) || budget < 1 || budget > 1e15) {
        return;
    }
    predict_origin(table, budget, decision);
    std::vector<std::vector<double>> needs;
    std::vector<double> wholes;
    for (std::size_t job = 0; job < table.jobs.size(); ++job) {
        needs.push_back(needs_of(table, decision, job));
        wholes.push_back(sum(needs.back()));
    }
    if (sum(wholes) <= budget) {
        return;
    }
    const std::vector<double> shares = level(wholes, budget);
    std::vector<double> limits(table.claims.size(), 0);
    for (std::size_t job = 0; job < table.jobs.size(); ++job) {
        for (std::size_t i = 0; i < needs[job].size(); ++i) {
            const double part = wholes[job] > 0 ? needs[job][i] / wholes[job] : 0;
            limits[table.jobs[job].claims[i]] += shares[job] * part;
        }
    }
    for (std::size_t i = 0; i < limits.size(); ++i) {
        // 0 would be no limit.
        decision.origin_limit[i] =
            std::max<std::uint64_t>(1, static_cast<std::uint64_t>(std::floor(limits[i])));
    }
}

}  // namespace stoker::control
