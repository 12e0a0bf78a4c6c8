// T5 and T6: SHADE's replication and NoPFS's clairvoyance.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <iterator>

#include <fmt/core.h>

#include "sidecar/core/sampling/clairvoyant_accesses.h"
#include "sidecar/simulate/law_checks.h"

namespace stoker::simulate {

using domain::SampleIndex;

namespace {

// Hit ratio and coverage of an independent simulation (law 4).
struct ReplicationFigures {
    double w;
    double replication;
    double hits;
    double coverage;
    bool hits_open = false;
    bool coverage_open = false;
};

constexpr ReplicationFigures kReplication[] = {
    {.1, 1, .18, .62},
    {.1, 2, .30, .57},
    {.1, 3, .42, .51},
    {.2, 1, .33, .62},
    {.2, 2, .55, .51, true},
    {.2, 3, .85, .29, true, true},
    {.3, 1, .45, .62},
    {.3, 2, .81, .40, true, true},
    {.3, 3, 1.0, .22},
    {.5, 1, .66, .62},
    {.5, 2, 1.0, .36, false, true},
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

// Counted from the replayed epochs of a seeded job, over all ranks.
double counted_local_share(const sidecar::AccessCounts& counts) {
    std::uint64_t local = 0;
    std::uint64_t all = 0;
    for (std::uint32_t rank = 0; rank < counts.ranks(); ++rank) {
        std::vector<std::uint16_t> reads;
        for (SampleIndex sample = 0; sample < counts.samples(); ++sample) {
            reads.push_back(counts.at(rank, sample));
            all += reads.back();
        }
        std::ranges::sort(reads, std::greater{});
        for (std::size_t i = 0; i < counts.samples() / counts.ranks(); ++i) {
            local += reads[i];
        }
    }
    return static_cast<double>(local) / static_cast<double>(all);
}

// Origin reads of a whole run for each sample, when the ranks' room holds the dataset once and
// every rank reads what it does not own from the owner.
double reads_per_sample(const sidecar::AccessCounts& counts) {
    const std::uint32_t room = (counts.samples() + counts.ranks() - 1) / counts.ranks();
    const auto owners = sidecar::place_pooled(counts, room);
    double reads = 0;
    for (SampleIndex sample = 0; sample < counts.samples(); ++sample) {
        if (owners[sample] != sidecar::kNoOwner) {
            ++reads;  // the owner fetches it once
            continue;
        }
        for (std::uint32_t rank = 0; rank < counts.ranks(); ++rank) {
            reads += counts.at(rank, sample);
        }
    }
    return reads / counts.samples();
}

}  // namespace

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
        const JobMeans means = means_of(run_law(scenario), 0, scenario.discard);
        const std::string parameters = fmt::format("w={} r={}", figures.w, figures.replication);
        rows.push_back({"T5", "hit ratio", parameters, figures.hits, means.hit_ratio, .03});
        rows.back().open = figures.hits_open;
        rows.push_back({"T5", "coverage", parameters, figures.coverage, means.coverage, .03});
        rows.back().open = figures.coverage_open;
    }
    return rows;
}

std::vector<LawRow> check_clairvoyance() {
    std::vector<LawRow> rows;
    rows.push_back(
        {"T6",
         "samples that one of 16 ranks reads above 10x",
         "N=1281167 E=90",
         31'635,
         sidecar::expected_above(1'281'167, 90, 16, 10),
         1});
    for (const LocalShare& known : kLocalShares) {
        sidecar::EpochShape shape;
        shape.count = 20'000;
        shape.seed = 1;
        shape.ranks = known.ranks;
        for (std::size_t i = 0; i < std::size(kEpochs); ++i) {
            const sidecar::AccessCounts counts{shape, kEpochs[i]};
            const std::string parameters = fmt::format("n={} E={}", known.ranks, kEpochs[i]);
            rows.push_back(
                {"T6",
                 "reads served by a rank's own favourites",
                 parameters,
                 known.shares[i],
                 counted_local_share(counts),
                 .01});
            if (i == 0) {
                rows.push_back(
                    {"T6",
                     "origin reads of a sample, pooled",
                     parameters,
                     1,
                     reads_per_sample(counts),
                     0});
            }
        }
    }
    return rows;
}

}  // namespace stoker::simulate
