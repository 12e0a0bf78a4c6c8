#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "common/base/bytes.h"

namespace stoker::control {

// Miss mass m(c): the share of the bytes that a job requests of one dataset on one node that must
// come from outside of the node directory when c bytes of it are resident. 1 without a cache, 0
// with everything cached, convex and never rising: a byte more is never worth more than the byte
// before it, which is what lets bytes be divided by marginal value. An immutable value; pure,
// thread-safe.
//
// Sources: exact and measured laws 1 and 3 of the project's study (CoorDL, VLDB
// 2021; iCACHE, HPCA 2023); SiloD (EuroSys 2023) for the linear case.
class MissCurve {
public:
    static constexpr std::size_t kSketchSizeMax = 1024;
    static constexpr double kBetaMax = 64;

    // Every sample once per epoch in an order of the trainer's: 1 - c/d.
    static MissCurve exact(Bytes dataset);

    // A sample at loss percentile q is kept with probability q^beta, and the cache holds the most
    // important share w = c/d: (1-w)^(1+beta) of what is requested. A beta that is not a number or
    // negative counts as 0, one over kBetaMax as that.
    static MissCurve importance(Bytes dataset, double beta);

    // `masses`: how much is requested of each of equally large parts of the dataset, the part that
    // the cache keeps first in front; any scale, at most kSketchSizeMax parts (what is beyond is
    // cut off). Values that are not finite or negative count as 0; parts that are out of order are
    // levelled with their neighbours (pool adjacent violators), so that the curve stays convex. All
    // zero, or none: as exact.
    static MissCurve measured(Bytes dataset, const std::vector<float>& masses);

    [[nodiscard]] double miss_mass(Bytes cached) const;

    double operator()(Bytes cached) const { return miss_mass(cached); }

    // What the next byte saves, per byte: -dm/dc to the right of `cached`.
    [[nodiscard]] double marginal(Bytes cached) const;

    // The fewest bytes with miss_mass() <= mass; the whole dataset if mass is not positive.
    [[nodiscard]] Bytes bytes_for(double mass) const;

    // Where the slope changes: ascending, the last one is the dataset's size; a curve that is not
    // straight is given as at most `count` chords (at least 1) of whole `step`s.
    [[nodiscard]] std::vector<Bytes> knots(std::size_t count, Bytes step) const;

    // What a job requests in an epoch, as a share of the dataset: 1/(1+beta) with importance.
    [[nodiscard]] double epoch_volume() const { return 1 / exponent_; }

    [[nodiscard]] Bytes dataset() const { return dataset_; }

private:
    MissCurve(Bytes dataset, double exponent);
    [[nodiscard]] double share_of(Bytes cached) const;

    Bytes dataset_{};
    double exponent_ = 1;        // m = (1-w)^exponent, where there is no table
    std::vector<double> table_;  // m at 0/n, 1/n, ... n/n of the dataset; empty: the formula
};

}  // namespace stoker::control
