#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "sidecar/core/sampling/sampler.h"

namespace stoker::sidecar {

// One rank's epoch, for orders that are made as a list when the epoch begins. Not thread-safe.
struct ListedEpoch {
    std::vector<SampleIndex> order;
    std::size_t position = 0;
    EpochReport report;

    // Begins `epoch` again at its first sample.
    void rewind(std::uint64_t epoch) {
        position = 0;
        report = EpochReport{.epoch = epoch};
    }

    // Does what Sampler::draw() does; `repeats` returns whether the draw of a sample at a position
    // repeats an earlier draw.
    template <class Repeats>
    void draw(std::size_t count, const Repeats& repeats, std::vector<Draw>& draws) {
        for (const std::size_t end = end_of(count); position < end; ++position) {
            const SampleIndex sample = order[position];
            const bool repeated = repeats(sample, position);
            draws.push_back(
                {sample, sample, repeated ? Draw::Kind::kRepeated : Draw::Kind::kPlain});
            report.count(draws.back());
        }
    }

    void foresee(std::size_t count, std::vector<SampleIndex>& samples) const {
        const auto at = [this](std::size_t place) {
            return order.begin() + static_cast<std::ptrdiff_t>(place);
        };
        samples.insert(samples.end(), at(position), at(end_of(count)));
    }

private:
    [[nodiscard]] std::size_t end_of(std::size_t count) const {
        return position + std::min(count, order.size() - position);
    }
};

}  // namespace stoker::sidecar
