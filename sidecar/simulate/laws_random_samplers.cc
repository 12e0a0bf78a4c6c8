// `stoker laws --random`: samplers alone, at random parameters.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "sidecar/core/sampling/bucket_sampler.h"
#include "sidecar/core/sampling/exact_order.h"
#include "sidecar/core/sampling/importance_sampler.h"
#include "sidecar/simulate/law_checks.h"
#include "sidecar/simulate/losses.h"
#include "sidecar/simulate/random_workload.h"

namespace stoker::simulate {

namespace {

using sidecar::Draw;

// A node that holds a fixed set of samples.
class FixedNode final : public sidecar::Residency {
public:
    explicit FixedNode(std::uint32_t count)
        : stored_(count) {}

    // Stores a random `share` of all samples.
    void store(double share, std::uint64_t seed) {
        std::vector<SampleIndex> order(stored_.size());
        std::iota(order.begin(), order.end(), 0U);
        Prng prng{seed};
        sidecar::shuffle(order, prng);
        order.resize(static_cast<std::size_t>(share * static_cast<double>(order.size())));
        for (const SampleIndex sample : order) {
            stored_[sample] = true;
        }
    }

    [[nodiscard]] bool is_stored(SampleIndex sample) const override { return stored_[sample]; }

    [[nodiscard]] bool is_kept(SampleIndex sample) const override { return stored_[sample]; }

private:
    std::vector<bool> stored_;
};

sidecar::SamplerSettings importance_settings(RandomWorkload& random) {
    sidecar::SamplerSettings settings;
    settings.contract = "importance";
    settings.seed = random.seed();
    return settings;
}

// Reports a log-normal loss of every sample.
void report_losses(sidecar::Sampler& sampler, std::uint32_t count, std::uint64_t seed) {
    Prng prng{seed};
    std::vector<SampleIndex> samples(count);
    std::iota(samples.begin(), samples.end(), 0U);
    std::vector<float> losses(count);
    for (float& loss : losses) {
        loss = static_cast<float>(std::exp(normal(prng)));
    }
    sampler.on_losses(0, samples, losses);
}

std::vector<Draw> draw_epoch(sidecar::Sampler& sampler, std::uint64_t epoch, std::uint32_t count) {
    std::vector<Draw> draws;
    sampler.begin_epoch(0, epoch, 0);
    sampler.draw(0, count, draws);
    return draws;
}

template <class Created>
auto created(Created sampler) {
    STOKER_CHECK(sampler.has_value(), "a random workload is valid");
    return *std::move(sampler);
}

}  // namespace

// A share hShare of the samples that a selective epoch keeps is important.
LawRow random_h_share(RandomWorkload& random) {
    const auto count = static_cast<std::uint32_t>(random.samples());
    auto settings = importance_settings(random);
    settings.parameters["beta"] = random.number("beta", .1, 3);
    const double important = random.number("h", .3, .9);
    settings.parameters["hShare"] = important;
    settings.parameters["warmupEpochs"] = 1;
    const FixedNode node{count};
    const auto sampler = created(sidecar::ImportanceSampler::create(node, count, settings));
    std::uint64_t kept = 0;
    std::uint64_t flagged = 0;
    const std::uint64_t seed = random.seed();
    draw_epoch(*sampler, 0, count);
    for (std::uint64_t epoch = 1; static_cast<double>(kept) < 400'000 / important; ++epoch) {
        report_losses(*sampler, count, seed + epoch);
        const auto draws = draw_epoch(*sampler, epoch, count);
        if (!sampler->is_full(epoch)) {
            kept += draws.size();
            flagged += static_cast<std::uint64_t>(
                std::ranges::count(draws, Draw::Kind::kImportant, &Draw::kind));
        }
    }
    return random.row(
        "important samples among the kept",
        about(important).ceiling(1),
        static_cast<double>(flagged) / static_cast<double>(kept));
}

// With `repeat`, a request is a hit if any of the m near-duplicates in its group is on the node.
LawRow random_near_duplicates(RandomWorkload& random) {
    const auto copies = static_cast<std::uint32_t>(random.count("m", 2, 6));
    const auto count = static_cast<std::uint32_t>(random.samples()) / copies * copies;
    const double w = random.number("w", .1, .7);
    auto settings = importance_settings(random);
    settings.parameters = {{"family", 1}, {"warmupEpochs", 1}, {"redundancy", 2}};
    const double hits = 1 - std::pow(1 - w, copies);
    std::uint64_t drawn = 0;
    std::uint64_t here = 0;
    while (static_cast<double>(drawn) < 160'000 * copies * (1 - hits) / hits + 1) {
        settings.seed = random.seed();
        FixedNode node{count};
        node.store(w, random.seed());
        const auto sampler = created(sidecar::BucketSampler::create(node, count, settings));
        Prng prng{settings.seed};
        std::vector<SampleIndex> samples(count);
        std::iota(samples.begin(), samples.end(), 0U);
        sidecar::shuffle(samples, prng);
        std::vector<std::uint64_t> fingerprints(count);
        for (std::uint32_t i = 0; i < count; ++i) {
            // Members of a group differ in one bit each.
            fingerprints[i] =
                i % copies == 0 ? prng() : fingerprints[i - i % copies] ^ (1ULL << (i % copies));
        }
        report_losses(*sampler, count, random.seed());
        sampler->on_similarity(samples, fingerprints);
        draw_epoch(*sampler, 0, count);
        const auto draws = draw_epoch(*sampler, 1, count);
        drawn += draws.size();
        here += static_cast<std::uint64_t>(std::ranges::count_if(
            draws, [&node](const Draw& draw) { return node.is_stored(draw.served); }));
    }
    return random.row(
        "hits where near-duplicates stand in",
        about(hits).ceiling(1),
        static_cast<double>(here) / static_cast<double>(drawn));
}

// IOWA's bucket after k selective epochs: max(minFraction, (1 - outRate)^k) of the dataset.
LawRow random_bucket(RandomWorkload& random) {
    const auto count = static_cast<std::uint32_t>(random.samples());
    auto settings = importance_settings(random);
    const double rate = random.number("out-rate", .02, .4);
    const double least = random.number("min-fraction", .1, .7);
    const auto epochs = random.count("k", 1, 12);
    settings.parameters = {
        {"family", 1},
        {"warmupEpochs", 1},
        {"outRate", rate},
        {"minFraction", least},
        {"recallAfter", 10'000}};
    const FixedNode node{count};
    sidecar::BucketOptions options;
    options.adapt_rate = false;
    const auto sampler = created(sidecar::BucketSampler::create(node, count, settings, options));
    std::vector<Draw> draws = draw_epoch(*sampler, 0, count);
    for (std::uint64_t epoch = 1; epoch <= epochs; ++epoch) {
        report_losses(*sampler, count, random.seed());
        draws = draw_epoch(*sampler, epoch, count);
    }
    const double bucket = std::max(least, std::pow(1 - rate, static_cast<double>(epochs)));
    return random.row(
        "bucket after k epochs",
        about(bucket).ceiling(1),
        static_cast<double>(draws.size()) / count);
}

}  // namespace stoker::simulate
