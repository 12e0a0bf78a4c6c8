#include "sidecar/simulate/laws.h"

#include <cmath>

#include <fmt/core.h>

#include "common/base/check.h"
#include "sidecar/simulate/law_checks.h"
#include "sidecar/simulate/simulator.h"

namespace stoker::simulate {

Outcome run_law(const Scenario& scenario) {
    auto outcome = run(scenario);
    STOKER_CHECK(outcome.has_value(), "the scenario of a law must be valid");
    return *std::move(outcome);
}

// Law T1: one job with a new uniform order every epoch.
std::vector<LawRow> check_reshuffle() {
    std::vector<LawRow> rows;
    for (const double w : {.1, .2, .3, .4, .5, .6, .75}) {
        const double lru = w + (1 - w) * std::log(1 - w);
        for (const char* policy : {"lru", "never-evict", "belady"}) {
            Scenario scenario;
            scenario.cache.share = w;
            scenario.cache.policy = policy;
            scenario.epochs = 8;
            scenario.discard = 2;
            scenario.ahead = 0;
            const bool is_lru = policy == std::string_view{"lru"};
            rows.push_back(
                {fmt::format("hit ratio of {}", policy),
                 fmt::format("w={}", w),
                 within(is_lru ? lru : w, .003).ceiling(w + .003),
                 means_of(run_law(scenario), 0, scenario.discard).hit_ratio});
        }
    }
    return rows;
}

std::string_view to_string(Verdict verdict) {
    switch (verdict) {
        case Verdict::kHeld:
            return "held";
        case Verdict::kBroken:
            return "broken";
        case Verdict::kImpossible:
            return "impossible";
    }
    return "";
}

Expected Expected::floor(double least) const {
    Expected result = *this;
    result.possible_min = least;
    return result;
}

Expected Expected::ceiling(double most) const {
    Expected result = *this;
    result.possible_max = most;
    return result;
}

Verdict Expected::judge(double measured) const {
    // Rounding may put a figure slightly beyond a bound that it equals in exact arithmetic.
    const double hair = 1e-9 * std::abs(measured);
    if (measured < possible_min - hair || measured > possible_max + hair) {
        return Verdict::kImpossible;
    }
    bool held = false;
    switch (bound) {
        case Bound::kWithin:
            held = std::abs(measured - figure) <= tolerance;
            break;
        case Bound::kAtMost:
            held = measured <= figure;
            break;
        case Bound::kAtLeast:
            held = measured >= figure;
            break;
    }
    return held ? Verdict::kHeld : Verdict::kBroken;
}

const std::vector<Law>& laws() {
    static const std::vector<Law> kLaws = {
        {"T1",
         "one job, uniform order: LRU w+(1-w)ln(1-w), never-evict and Belady w",
         check_reshuffle},
        {"T2", "IIS reads 1/(1+beta) of the dataset in a selective epoch", check_selection},
        {"T3",
         "requests of importance against LRU and never-evict; one request a sample",
         check_importance_cost},
        {"T4",
         "two jobs, one cache: ranks aggregated over both beat the first one's alone",
         check_aggregated_importance},
        {"T5", "SHADE: hits and coverage by cache and replication", check_replication},
        {"T6",
         "NoPFS: who reads what how often, and each sample once from the origin",
         check_clairvoyance},
        {"T9",
         "several windowed jobs: at most 1.1 (1-sw)/J fetches per job and epoch, exactly once each",
         check_sharing},
        {"T10",
         "several jobs, Seneca's ODS: 0.68, 0.59, 0.54 fetches per job and epoch",
         check_ods},
        {"T11", "IOWA: the bucket's size by epoch, and what is fetched for it", check_buckets},
        {"T12",
         "three windowed jobs at a product's scale: lock-step, speeds, three draws of phases",
         check_product_scale},
        {"T13",
         "iCACHE: the shadow heap takes two pieces of memory, at most 0.5 % of MNIST's cache",
         check_shadow_heap},
    };
    return kLaws;
}

}  // namespace stoker::simulate
