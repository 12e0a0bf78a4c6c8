#pragma once

#include <cstdint>
#include <vector>

#include "common/base/bytes.h"

namespace stoker::sidecar {

// The order in which a node directory keeps a dataset, by value: where a sample of some value
// stands in it. Made of all samples, or of an even choice among many. An immutable value.
class RankOrder {
public:
    struct Entry {
        float value = 0;
        Bytes bytes{};
    };

    // A part of the dataset's bytes: 0 is the first byte to keep, 1 the end.
    struct Span {
        double begin = 0;
        double end = 1;
    };

    RankOrder() = default;
    explicit RankOrder(std::vector<Entry> entries);

    // Ranks of all samples with this value; where there is none, of the next worse one.
    [[nodiscard]] Span span_of(float value) const;

private:
    std::vector<float> values_;  // falling
    std::vector<double> ends_;   // of each one's bytes, as a share of all
};

// How unevenly one job reads a dataset on one node: the bytes that it was given in epochs past,
// over equal parts of the dataset in the order in which the node directory keeps them. It is what
// the operator learns of a job's importance, whatever the contract's formula, and whatever other
// jobs want to keep: 4 KiB, and nothing of single samples. O(log n) a draw. Not thread-safe.
class RankSketch {
public:
    static constexpr std::uint32_t kPartsMax = 1024;

    // Parts of at least 32 samples: chance must not look like a preference.
    explicit RankSketch(std::uint32_t sample_count);

    void count(const RankOrder::Span& span, Bytes bytes);

    // What was counted since the last call was one epoch. An epoch counts a quarter less with every
    // one after it, because jobs read in turns everything and what matters. Without a count: no
    // epoch.
    void close_epoch();

    // 0: no epoch yet. Then one more with each epoch.
    [[nodiscard]] std::uint64_t revision() const { return revision_; }

    // Bytes of a typical epoch, and how they divide among the parts.
    [[nodiscard]] Bytes epoch_bytes() const;
    [[nodiscard]] std::vector<float> masses() const;

private:
    std::vector<double> steps_;   // of the running epoch: differences from part to part, and an end
    std::vector<double> masses_;  // of epochs past
    double counted_ = 0;
    double epoch_weights_ = 0;
    std::uint64_t revision_ = 0;
};

}  // namespace stoker::sidecar
