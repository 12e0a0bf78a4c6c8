#pragma once

#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "sidecar/core/sampling/bucket_sampler.h"
#include "tests/unit/sidecar/core/sampling/node_contents.h"

// Makes bucket samplers (contract `importance`, family Iowa) and reports losses to them.
namespace stoker::sidecar {

using Parameters = std::map<std::string, double, std::less<>>;

inline constexpr double kRemove{static_cast<double>(Redundancy::kRemove)};
inline constexpr double kRepeat{static_cast<double>(Redundancy::kRepeat)};

inline SamplerSettings settings_of(
    Parameters parameters, std::uint64_t seed = 0, std::uint32_t ranks = 1) {
    parameters["family"] = 1;
    return {
        .contract = "importance",
        .seed = seed,
        .ranks = ranks,
        .parameters = std::move(parameters)};
}

inline std::unique_ptr<BucketSampler> make(
    std::uint32_t count,
    const SamplerSettings& settings,
    BucketOptions options = {.adapt_rate = false},
    const Residency& node = test::kEmptyNode) {
    auto sampler = BucketSampler::create(node, count, settings, std::move(options));
    EXPECT_TRUE(sampler.has_value());
    return *std::move(sampler);
}

inline std::unique_ptr<BucketSampler> make(std::uint32_t count, Parameters parameters = {}) {
    return make(count, settings_of(std::move(parameters)));
}

inline std::unique_ptr<BucketSampler> make_grouped(
    std::uint32_t count,
    Parameters parameters,
    RedundancyGroups groups,
    const Residency& node = test::kEmptyNode) {
    return make(
        count,
        settings_of(std::move(parameters)),
        {.adapt_rate = false, .groups = std::move(groups)},
        node);
}

inline void learn(BucketSampler& sampler, SampleIndex sample, float p_true) {
    const float loss = -std::log(p_true);
    sampler.on_losses(0, {&sample, 1}, {&loss, 1});
}

// Sample i has p_true = 1 - i/count * spread: higher samples are harder.
inline void teach(BucketSampler& sampler, std::uint32_t count, double spread = 0.6) {
    for (SampleIndex sample = 0; sample < count; ++sample) {
        const auto p_true = static_cast<float>(1 - spread * sample / count);
        learn(sampler, sample, p_true);
    }
}

}  // namespace stoker::sidecar
