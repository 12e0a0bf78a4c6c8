// T5 and T6: SHADE's replication and NoPFS's clairvoyance.
#include <cstdint>
#include <iterator>
#include <utility>

#include <fmt/core.h>

#include "common/base/check.h"
#include "sidecar/core/sampling/clairvoyant_accesses.h"
#include "sidecar/simulate/clairvoyance.h"
#include "sidecar/simulate/law_checks.h"

namespace stoker::simulate {

namespace {

// Hit ratio and coverage of an independent simulation (law 4).
struct ReplicationFigures {
    double w;
    double replication;
    double hits;
    double coverage;
};

constexpr ReplicationFigures kReplication[] = {
    {.1, 1, .18, .62},
    {.1, 2, .30, .57},
    {.1, 3, .42, .51},
    {.2, 1, .33, .62},
    {.2, 2, .55, .51},
    {.2, 3, .85, .29},
    {.3, 1, .45, .62},
    {.3, 2, .81, .40},
    {.3, 3, 1.0, .22},
    {.5, 1, .66, .62},
    {.5, 2, 1.0, .36},
    {.5, 3, 1.0, .34},
};

// Share of a rank's reads that its own most frequent samples serve (law 8).
struct LocalShare {
    std::uint32_t ranks;
    double shares[4];  // by kEpochs
};

constexpr std::uint64_t kEpochs[] = {3, 10, 30, 90};
constexpr LocalShare kLocalShares[] = {
    {2, {.75, .62, .57, .54}},
    {4, {.56, .43, .35, .31}},
    {8, {.45, .32, .23, .19}},
    {16, {.40, .24, .16, .12}},
};

// As `stoker simulate --policy nopfs --world RANKS --epochs EPOCHS --cache-share 1/RANKS`.
ClairvoyantFigures simulate_ranks(
    std::uint32_t ranks, std::uint64_t epochs, Placement placement = Placement::kOwn) {
    Scenario scenario;
    scenario.cache.policy = "nopfs";
    scenario.cache.share = 1.0 / ranks;
    scenario.epochs = static_cast<std::uint32_t>(epochs);
    ClairvoyantSpec spec;
    spec.world = ranks;
    spec.placement = placement;
    auto figures = run_clairvoyant(scenario, spec);
    STOKER_CHECK(figures.has_value(), "the scenarios of laws are valid");
    return *std::move(figures);
}

}  // namespace

// The simulated job draws from the first epoch on; a sample without a loss weighs 1 among scores of
// 2.3 and more. The released code begins with a plain shuffle, which is also our default.
std::vector<LawRow> check_replication() {
    std::vector<LawRow> rows;
    for (const ReplicationFigures& figures : kReplication) {
        Scenario scenario;
        scenario.cache.share = figures.w;
        scenario.batch = 64;
        scenario.ahead = 0;
        scenario.epochs = 14;
        scenario.discard = 4;
        scenario.seed = 5;
        scenario.jobs[0].contract = "replicate";
        scenario.jobs[0].parameters["replication"] = figures.replication;
        scenario.jobs[0].parameters["warmup-epochs"] = 0;
        scenario.jobs[0].parameters["unseen-score"] = 1;
        const JobMeans means = means_of(run_law(scenario), 0, scenario.discard);
        const std::string parameters = fmt::format("w={} r={}", figures.w, figures.replication);
        rows.push_back({"hit ratio", parameters, within(figures.hits, .03), means.hit_ratio});
        rows.push_back({"coverage", parameters, within(figures.coverage, .03), means.coverage});
    }
    return rows;
}

std::vector<LawRow> check_clairvoyance() {
    std::vector<LawRow> rows;
    rows.push_back(
        {"samples that one of 16 ranks reads above 10x",
         "N=1281167 E=90",
         within(31'635, 1),
         sidecar::expected_above(1'281'167, 90, 16, 10)});
    for (const LocalShare& known : kLocalShares) {
        for (std::size_t i = 0; i < std::size(kEpochs); ++i) {
            const ClairvoyantFigures figures = simulate_ranks(known.ranks, kEpochs[i]);
            const std::string parameters = fmt::format("n={} E={}", known.ranks, kEpochs[i]);
            rows.push_back(
                {"reads served by a rank's own favourites",
                 parameters,
                 within(known.shares[i], .01),
                 figures.favourite_share});
            if (known.ranks == 16 && kEpochs[i] == 90) {
                const double above = sidecar::expected_above(20'000, 90, 16, 10);
                rows.push_back(
                    {"the same of 20000, counted",
                     parameters,
                     within(above, .03 * above),
                     figures.above});
            }
            if (i == 0) {
                rows.push_back(
                    {"origin reads of a sample, pooled",
                     parameters,
                     within(1, 0).floor(1),
                     simulate_ranks(known.ranks, kEpochs[i], Placement::kPooled)
                         .origin_per_sample});
            }
        }
    }
    return rows;
}

}  // namespace stoker::simulate
