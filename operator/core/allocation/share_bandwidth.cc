#include "operator/core/allocation/share_bandwidth.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "operator/core/allocation/level_fill.h"
#include "operator/core/allocation/user_curve.h"

namespace stoker::control {

namespace {

// Misses are rounded up to sixteenths, so that limits do not change with every byte.
constexpr double kMissSteps = 16;

// Origin bytes/s that the job needs for each of its claims, with these amounts cached.
std::vector<double> needs_of(
    const ClaimTable& table, std::size_t job, const ClaimBytes& cached, bool in_steps) {
    std::vector<double> needs;
    for (const std::size_t i : table.jobs[job].claims) {
        const ClaimUser& user = table.claims[i].user(job);
        const double missed = UserCurve{table.jobs[job], user}.miss_mass(cached[i]);
        needs.push_back(
            user.rate * (in_steps ? std::ceil(missed * kMissSteps) / kMissSteps : missed) *
            user.fetched);
    }
    return needs;
}

ClaimBytes cached_now(const ClaimTable& table, const PoolDecision& decision) {
    ClaimBytes cached;
    for (std::size_t i = 0; i < table.claims.size(); ++i) {
        cached.push_back(std::min(table.claims[i].resident, decision.granted[i]));
    }
    return cached;
}

double sum(const std::vector<double>& values) {
    return std::accumulate(values.begin(), values.end(), 0.0);
}

// Max-min: equal shares, but none above its need.
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

// Rounds down, but not below 1: 0 would mean no limit.
std::vector<std::uint64_t> whole_limits(const std::vector<double>& limits) {
    std::vector<std::uint64_t> result;
    for (const double limit : limits) {
        result.push_back(std::max<std::uint64_t>(1, static_cast<std::uint64_t>(std::floor(limit))));
    }
    return result;
}

// Predicts each job's origin rate once the plan is carried out.
void predict_origin(const ClaimTable& table, double budget, PoolDecision& decision) {
    std::vector<double> needs;
    for (std::size_t job = 0; job < table.jobs.size(); ++job) {
        needs.push_back(sum(needs_of(table, job, decision.target, false)));
    }
    const std::vector<double> shares = level(needs, budget);
    for (std::size_t job = 0; job < shares.size(); ++job) {
        // No job has to wait: the origin can serve all requested bytes.
        decision.job_origin[job] =
            shares[job] + 1 >= needs[job] ? table.jobs[job].ingest : shares[job];
    }
}

FillOrigin fill_origin_of(const ClaimTable& table, const ClaimBytes& cached, double left) {
    FillOrigin result{table.pool.pool, static_cast<std::uint64_t>(std::max(left, 0.0)), 0};
    for (std::size_t i = 0; i < table.claims.size(); ++i) {
        const std::vector<ClaimUser>& users = table.claims[i].users;
        result.unprofiled += std::ranges::any_of(users, [&](const ClaimUser& user) {
            const PlannedJob& job = table.jobs[user.job];
            return job.knowledge == JobKnowledge::kProfiling && !user.remote &&
                   UserCurve{job, user}.miss_mass(cached[i]) > 0;
        });
    }
    return result;
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
    const ClaimBytes cached = cached_now(table, decision);
    std::vector<std::vector<double>> needs;
    std::vector<double> wholes;
    for (std::size_t job = 0; job < table.jobs.size(); ++job) {
        needs.push_back(needs_of(table, job, cached, true));
        wholes.push_back(sum(needs.back()));
    }
    const double left = budget - sum(wholes);
    decision.fill_origin = fill_origin_of(table, cached, left);
    if (left >= 0) {
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
    decision.origin_limit = whole_limits(limits);
}

}  // namespace stoker::control
