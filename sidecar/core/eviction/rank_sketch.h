#pragma once

#include <cstdint>
#include <vector>

#include "common/base/bytes.h"

namespace stoker::sidecar {

// The order in which a node directory keeps samples: by their aggregated importance (`value`),
// highest first. Built from all samples or from a uniform choice of them. Immutable.
class RankOrder {
public:
    struct Entry {
        float value = 0;
        Bytes bytes{};
    };

    // A range of the dataset's bytes: 0 is the first byte to keep, 1 the end.
    struct Span {
        double begin = 0;
        double end = 1;
    };

    RankOrder() = default;
    explicit RankOrder(std::vector<Entry> entries);

    // Range of the samples with this value; if there are none, of those with the next lower value.
    [[nodiscard]] Span span_of(float value) const;

private:
    std::vector<float> values_;  // descending
    std::vector<double> ends_;   // cumulative bytes after each value, as a share of all
};

// How unevenly one job reads a dataset on one node: bytes served in past epochs, over equal parts
// of the dataset in the node directory's keeping order. The operator receives only this sketch of a
// job's importance: 4 KiB, no single samples, independent of the contract's formula and of other
// jobs. O(log n) per draw. Not thread-safe.
class RankSketch {
public:
    static constexpr std::uint32_t kPartsMax = 1024;

    // Divides the dataset into parts of at least 32 samples each, so that chance differences do not
    // look like a preference.
    explicit RankSketch(std::uint32_t sample_count);

    void count(const RankOrder::Span& span, Bytes bytes);

    // Ends an epoch: everything counted since the last call. Each later epoch reduces its weight by
    // a quarter, because jobs alternate full and selective epochs. Does nothing if nothing was
    // counted.
    void close_epoch();

    // Number of close_epoch() calls that ended an epoch.
    [[nodiscard]] std::uint64_t revision() const { return revision_; }

    // Bytes that the job reads in a typical epoch. masses(): their distribution over the parts.
    [[nodiscard]] Bytes epoch_bytes() const;
    [[nodiscard]] std::vector<float> masses() const;

private:
    std::vector<double> steps_;   // this epoch's bytes, as differences from part to part
    std::vector<double> masses_;  // bytes of past epochs, by part
    double counted_ = 0;
    double epoch_weights_ = 0;
    std::uint64_t revision_ = 0;
};

}  // namespace stoker::sidecar
