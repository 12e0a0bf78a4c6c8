#include "sidecar/simulate/clairvoyance.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <utility>

#include <fmt/core.h>

#include "sidecar/core/sampling/clairvoyant_accesses.h"
#include "sidecar/simulate/assembly.h"
#include "sidecar/simulate/catalogue.h"

namespace stoker::simulate {

using domain::SampleIndex;

namespace {

constexpr std::uint8_t kNowhere = 255;
constexpr std::size_t kTiersMax = 16;

Result<sidecar::TierModel> model_of(const TierSpec& tier) {
    STOKER_TRY(auto read, sidecar::BandwidthCurve::make(tier.read));
    STOKER_TRY(auto write, sidecar::BandwidthCurve::make(tier.write));
    return sidecar::TierModel{std::move(read), std::move(write), tier.threads};
}

std::vector<TierSpec> tiers_of(const Scenario& scenario, const ClairvoyantSpec& spec) {
    if (!spec.tiers.empty()) {
        return spec.tiers;
    }
    TierSpec only;
    only.share = scenario.cache.share;
    return {only};
}

Result<sidecar::NodeModel> node_of(
    const Scenario& scenario, const ClairvoyantSpec& spec, double mean_bytes) {
    CurvePoints origin = spec.origin;
    if (origin.empty()) {
        origin = {{1, static_cast<double>(scenario.origin.bytes_per_second.count())}};
    }
    STOKER_TRY(auto curve, sidecar::BandwidthCurve::make(std::move(origin)));
    STOKER_TRY(auto staging, model_of(spec.staging));
    sidecar::NodeModel node{
        .compute = scenario.samples_per_second * scenario.jobs[0].speed * mean_bytes,
        .preprocess = spec.preprocess,
        .peer = spec.peer,
        .origin = std::move(curve),
        .origin_clients = static_cast<double>(spec.world),
        .staging = std::move(staging),
        .tiers = {}};
    for (const TierSpec& tier : tiers_of(scenario, spec)) {
        STOKER_TRY(auto model, model_of(tier));
        node.tiers.push_back(std::move(model));
    }
    return node;
}

// One job's run: which rank keeps which sample, which rank has it already, and the cost of each
// epoch.
class Run {
public:
    Run(std::vector<Bytes> sizes, sidecar::EpochShape shape, sidecar::NodeModel node)
        : sizes_(std::move(sizes)),
          shape_(shape),
          node_(std::move(node)),
          tier_of_(shape.ranks, std::vector<std::uint8_t>(shape.count, kNowhere)),
          has_(shape.ranks, std::vector<bool>(shape.count)),
          keeper_(shape.count, sidecar::kNoOwner),
          nearest_(shape.count, kNowhere),
          streams_(shape.ranks) {}

    void keep(std::uint32_t rank, SampleIndex sample, std::size_t tier) {
        tier_of_[rank][sample] = static_cast<std::uint8_t>(tier);
        keeper_[sample] = std::min(keeper_[sample], rank);
    }

    [[nodiscard]] bool keeps(std::uint32_t rank, SampleIndex sample) const {
        return tier_of_[rank][sample] != kNowhere;
    }

    ClairvoyantEpoch epoch(std::uint64_t number) {
        for (auto& stream : streams_) {
            stream.clear();
        }
        ClairvoyantEpoch figures;
        sidecar::for_each_read(
            shape_, number, [&](std::uint32_t rank, SampleIndex sample, auto /*position*/) {
                read(rank, sample, figures);
            });
        for (const auto& stream : streams_) {
            figures.seconds =
                std::max(figures.seconds, sidecar::consume_times(node_, stream).back());
        }
        return figures;
    }

private:
    void read(std::uint32_t rank, SampleIndex sample, ClairvoyantEpoch& figures) {
        sidecar::ModelRead read{sizes_[sample], {}};
        if (has_[rank][sample]) {
            read.copies.local_tier = tier_of_[rank][sample];
        }
        if (nearest_[sample] != kNowhere) {
            read.copies.peer_tier = nearest_[sample];
        }
        switch (sidecar::choose_source(node_, read.size, read.copies).source) {
            case sidecar::Source::kLocal:
                ++figures.local;
                break;
            case sidecar::Source::kPeer:
                ++figures.peer;
                take(rank, sample);
                break;
            case sidecar::Source::kOrigin:
                ++figures.origin;
                figures.origin_bytes += read.size;
                // A miss goes to the sample's keeper, which fetches it if necessary.
                take(keeps(rank, sample) ? rank : keeper_[sample], sample);
                break;
        }
        streams_[rank].push_back(read);
    }

    void take(std::uint32_t rank, SampleIndex sample) {
        if (rank != sidecar::kNoOwner && keeps(rank, sample)) {
            has_[rank][sample] = true;
            nearest_[sample] = std::min(nearest_[sample], tier_of_[rank][sample]);
        }
    }

    std::vector<Bytes> sizes_;
    sidecar::EpochShape shape_;
    sidecar::NodeModel node_;
    std::vector<std::vector<std::uint8_t>> tier_of_;  // by rank and sample: its future tier
    std::vector<std::vector<bool>> has_;              // whether the tier has it already
    std::vector<std::uint32_t> keeper_;               // the first rank that keeps it
    std::vector<std::uint8_t> nearest_;               // fastest tier of any rank that has it
    std::vector<std::vector<sidecar::ModelRead>> streams_;
};

std::vector<Bytes> capacities_of(const std::vector<TierSpec>& tiers, std::span<const Bytes> sizes) {
    const Bytes all = std::accumulate(sizes.begin(), sizes.end(), Bytes{});
    std::vector<Bytes> capacities;
    for (const TierSpec& tier : tiers) {
        capacities.emplace_back(static_cast<std::uint64_t>(
            std::llround(tier.share * static_cast<double>(all.count()))));
    }
    return capacities;
}

void place_favourites(
    const sidecar::AccessCounts& counts,
    const sidecar::EpochShape& shape,
    std::uint64_t epochs,
    std::span<const Bytes> sizes,
    std::span<const Bytes> capacities,
    Run& run) {
    const auto uses = sidecar::first_uses(shape, epochs);
    for (std::uint32_t rank = 0; rank < shape.ranks; ++rank) {
        const auto placed = sidecar::place_own(counts, rank, uses[rank], sizes, capacities);
        for (std::size_t tier = 0; tier < placed.tiers.size(); ++tier) {
            for (const SampleIndex sample : placed.tiers[tier]) {
                run.keep(rank, sample, tier);
            }
        }
    }
}

// Fills the owners' tiers with the samples that they read most often. Capacity is in samples of
// mean size, so all ranks agree without communication.
void place_owned(
    const sidecar::AccessCounts& counts,
    std::span<const Bytes> sizes,
    std::span<const Bytes> capacities,
    Run& run) {
    const Bytes all = std::accumulate(sizes.begin(), sizes.end(), Bytes{});
    const double mean = static_cast<double>(all.count()) / static_cast<double>(sizes.size());
    std::vector<std::size_t> room;
    for (const Bytes capacity : capacities) {
        const double samples = static_cast<double>(capacity.count()) / mean;
        room.push_back(static_cast<std::size_t>(std::ceil(samples - 1e-6)));
    }
    const auto total = std::accumulate(room.begin(), room.end(), std::size_t{0});
    const auto owners = sidecar::place_pooled(counts, static_cast<std::uint32_t>(total));
    std::vector<std::vector<SampleIndex>> owned(counts.readers());
    for (SampleIndex sample = 0; sample < counts.samples(); ++sample) {
        if (owners[sample] != sidecar::kNoOwner) {
            owned[owners[sample]].push_back(sample);
        }
    }
    for (std::uint32_t rank = 0; rank < counts.readers(); ++rank) {
        std::ranges::stable_sort(owned[rank], std::greater{}, [&](SampleIndex sample) {
            return counts.at(rank, sample);
        });
        std::size_t next = 0;
        for (std::size_t tier = 0; tier < room.size(); ++tier) {
            const std::size_t end = std::min(owned[rank].size(), next + room[tier]);
            for (; next < end; ++next) {
                run.keep(rank, owned[rank][next], tier);
            }
        }
    }
}

void count_reads(
    const sidecar::AccessCounts& counts,
    std::uint64_t threshold,
    const Run& run,
    ClairvoyantFigures& figures) {
    std::uint64_t favourites = 0;
    std::uint64_t above = 0;
    for (std::uint32_t rank = 0; rank < counts.readers(); ++rank) {
        for (SampleIndex sample = 0; sample < counts.samples(); ++sample) {
            const std::uint64_t reads = counts.at(rank, sample);
            figures.reads += reads;
            favourites += run.keeps(rank, sample) ? reads : 0;
            above += reads > threshold ? 1 : 0;
        }
    }
    figures.favourite_share = static_cast<double>(favourites) / static_cast<double>(figures.reads);
    figures.above = static_cast<double>(above) / counts.readers();
}

Status check_tiers(const Scenario& scenario, const ClairvoyantSpec& spec) {
    const auto tiers = tiers_of(scenario, spec);
    const auto is_wrong = [](const TierSpec& tier) {
        return !(tier.share >= 0 && tier.share <= 1) || !(tier.threads >= 1);
    };
    if (tiers.size() > kTiersMax || std::ranges::any_of(tiers, is_wrong) ||
        is_wrong(spec.staging)) {
        return fail(
            ErrorCode::kInvalidArgument,
            fmt::format(
                "a node has at most {} tiers, each with a share of the dataset of 0 to 1 "
                "and 1 thread or more",
                kTiersMax));
    }
    if (!(spec.peer > 0) || !(spec.preprocess > 0)) {
        return fail(ErrorCode::kInvalidArgument, "bandwidths must be above 0");
    }
    STOKER_TRY_VOID(node_of(scenario, spec, 1));
    return {};
}

}  // namespace

Status check_clairvoyant(const Scenario& scenario, const ClairvoyantSpec& spec) {
    STOKER_TRY_VOID(check_scenario(scenario));
    const std::uint64_t samples =
        scenario.dataset.sizes.empty() ? scenario.dataset.samples : scenario.dataset.sizes.size();
    if (spec.world == 0 || spec.world > samples || spec.world * samples > 400'000'000) {
        return fail(
            ErrorCode::kInvalidArgument,
            "a world has 1 rank or more, not more than samples, and ranks times samples are at "
            "most 400,000,000");
    }
    if (scenario.epochs > 65535) {
        return fail(ErrorCode::kInvalidArgument, "at most 65535 epochs are counted");
    }
    return check_tiers(scenario, spec);
}

Result<ClairvoyantFigures> run_clairvoyant(const Scenario& scenario, const ClairvoyantSpec& spec) {
    STOKER_TRY_VOID(check_clairvoyant(scenario, spec));
    std::vector<Bytes> sizes;
    for (const std::uint64_t size : sizes_of(scenario.dataset, scenario.seed)) {
        sizes.emplace_back(size);
    }
    const auto count = static_cast<std::uint32_t>(sizes.size());
    const Bytes all = std::accumulate(sizes.begin(), sizes.end(), Bytes{});
    STOKER_TRY(auto node, node_of(scenario, spec, static_cast<double>(all.count()) / count));
    const sidecar::EpochShape shape{.count = count, .seed = scenario.seed, .ranks = spec.world};
    const sidecar::AccessCounts counts{shape, scenario.epochs};
    const auto capacities = capacities_of(tiers_of(scenario, spec), sizes);
    Run run{sizes, shape, std::move(node)};
    if (spec.placement == Placement::kPooled) {
        place_owned(counts, sizes, capacities, run);
    } else {
        place_favourites(counts, shape, scenario.epochs, sizes, capacities, run);
    }
    ClairvoyantFigures figures;
    figures.samples = count;
    count_reads(counts, spec.threshold, run, figures);
    figures.above_expected =
        sidecar::expected_above(count, scenario.epochs, spec.world, spec.threshold);
    const double kept =
        std::accumulate(capacities.begin(), capacities.end(), 0.0, [&](double sum, Bytes capacity) {
            return sum + static_cast<double>(capacity.count()) / static_cast<double>(all.count());
        });
    figures.favourite_expected =
        sidecar::expected_local_share(scenario.epochs, spec.world, std::min(1.0, kept));
    std::uint64_t origin = 0;
    for (std::uint64_t epoch = 0; epoch < scenario.epochs; ++epoch) {
        figures.epochs.push_back(run.epoch(epoch));
        origin += figures.epochs.back().origin;
    }
    figures.origin_per_sample = static_cast<double>(origin) / count;
    return figures;
}

}  // namespace stoker::simulate
