#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "sidecar/core/sampling/sampler.h"

namespace stoker::test {

// Fake sampler: draws 0, 1, 2, ... for rank 0 of 1, every `ranks`-th id if there are more ranks.
// Records its calls in public members.
class InOrder final : public sidecar::Sampler {
public:
    InOrder(std::uint32_t count, std::uint32_t ranks)
        : count_(count),
          ranks_(ranks) {}

    void on_stored(sidecar::SampleIndex sample) override { stored.push_back(sample); }

    void begin_epoch(std::uint32_t rank, std::uint64_t epoch, std::uint64_t skip) override {
        next_[rank] = rank + skip * ranks_;
        report_.epoch = epoch;
    }

    void draw(std::uint32_t rank, std::size_t count, std::vector<sidecar::Draw>& draws) override {
        for (auto& next = next_[rank]; count > 0 && next < count_; next += ranks_, --count) {
            const auto sample = static_cast<sidecar::SampleIndex>(next);
            draws.push_back({sample, sample, sidecar::Draw::Kind::kImportant});
            ++report_.requested;
        }
    }

    void foresee(std::uint32_t rank, std::size_t count, std::vector<sidecar::SampleIndex>& samples)
        const override {
        for (auto next = next_.at(rank); count > 0 && next < count_; next += ranks_, --count) {
            samples.push_back(static_cast<sidecar::SampleIndex>(next));
        }
    }

    void on_losses(
        std::uint32_t rank,
        std::span<const sidecar::SampleIndex> samples,
        std::span<const float> values) override {
        for (std::size_t i = 0; i < std::min(samples.size(), values.size()); ++i) {
            losses.emplace_back(rank, samples[i], values[i]);
        }
    }

    void on_p_others(
        std::span<const sidecar::SampleIndex> samples, std::span<const float> values) override {
        for (std::size_t i = 0; i < std::min(samples.size(), values.size()); ++i) {
            p_others.emplace_back(samples[i], values[i]);
        }
    }

    void on_waiting(double share) override { waited.push_back(share); }

    [[nodiscard]] sidecar::EpochReport report(std::uint32_t /*rank*/) const override {
        return report_;
    }

    [[nodiscard]] std::string snapshot() const override { return "state"; }

    bool restore(std::string_view snapshot) override {
        restored = snapshot;
        return snapshot != "rubbish";
    }

    std::vector<sidecar::SampleIndex> stored;
    std::vector<std::tuple<std::uint32_t, sidecar::SampleIndex, float>> losses;
    std::vector<std::pair<sidecar::SampleIndex, float>> p_others;
    std::string restored;
    std::vector<double> waited;

private:
    std::uint64_t count_;
    std::uint64_t ranks_;
    std::map<std::uint32_t, std::uint64_t> next_;
    sidecar::EpochReport report_;
};

}  // namespace stoker::test
