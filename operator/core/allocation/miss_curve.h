#pragma once

#include <vector>

#include "common/base/bytes.h"

namespace stoker::control {

// Miss mass m(c): share of the bytes a job requests of one dataset on one node that must come from
// outside the node directory while c bytes of the dataset are resident. It is 1 without a cache
// (less where samples are drawn again in an epoch), 0 with the whole dataset cached, convex and
// non-increasing: no byte has more value than the byte before it, so bytes can be divided by
// marginal value. An immutable value; pure, thread-safe.
//
// Sources: laws T1 (exact) and T3 (importance) of `stoker laws`; CoorDL (VLDB 2021), iCACHE (HPCA
// 2023); SiloD (EuroSys 2023) for the linear case.
class MissCurve {
public:
    static constexpr std::size_t kSketchSizeMax = 1024;
    static constexpr double kBetaMax = 64;

    // The curve 1 - c/d: every sample once per epoch, in the trainer's order.
    static MissCurve exact(Bytes dataset);

    // A sample at loss percentile q is kept with probability q^beta, and the cache holds the most
    // important share w = c/d: selective epochs request 1/(1+beta) of the dataset and miss
    // (1-w)^(1+beta) of that. `full_epochs` of all epochs, 0..1, request everything and miss 1-w.
    // A NaN or negative number counts as 0; `beta` is cut at kBetaMax, `full_epochs` at 1.
    static MissCurve importance(Bytes dataset, double beta, double full_epochs = 0);

    // Contract replicate: an epoch draws as many samples as there are, with replacement. A sample
    // whose loss is above those of k others of its batch has weight ln(k + bias), times
    // `replication` if it is resident. A sample that is drawn again in the epoch is fetched once.
    // With a replication above 1 the true curve is not convex; the result is then a convex curve
    // below it.
    static MissCurve replicate(Bytes dataset, double replication, double bias);

    // `masses`: requested amounts of equally large parts of the dataset, in the order in which the
    // cache keeps them; any scale, at most kSketchSizeMax parts (more are cut off). Non-finite and
    // negative values count as 0; parts out of order are averaged with their neighbours (pool
    // adjacent violators), so that the curve stays convex. All zero or empty: as exact().
    // `again`: draws with replacement, as many as there are samples; a sample that is drawn again in
    // the epoch is fetched once.
    static MissCurve measured(Bytes dataset, const std::vector<float>& masses, bool again = false);

    [[nodiscard]] double miss_mass(Bytes cached) const;

    double operator()(Bytes cached) const { return miss_mass(cached); }

    // Miss mass saved by the next byte: -dm/dc to the right of `cached`.
    [[nodiscard]] double marginal(Bytes cached) const;

    // Fewest bytes with miss_mass() <= mass; the whole dataset if mass <= 0.
    [[nodiscard]] Bytes bytes_for(double mass) const;

    // Points where the slope changes, ascending; the last one is the dataset's size. A curve that
    // is not straight is cut into at most `count` chords (at least 1) of whole `step`s.
    [[nodiscard]] std::vector<Bytes> knots(std::size_t count, Bytes step) const;

    // Requested share of the dataset per epoch: 1/(1+beta) in a selective epoch.
    [[nodiscard]] double epoch_volume() const { return 1 / (linear_ + (1 - linear_) * exponent_); }

    [[nodiscard]] Bytes dataset() const { return dataset_; }

private:
    MissCurve(Bytes dataset, double exponent);
    static MissCurve of_parts(Bytes dataset, const std::vector<double>& parts);
    [[nodiscard]] double share_of(Bytes cached) const;

    Bytes dataset_{};
    // If table_ is empty: m = linear (1-w) + (1 - linear) (1-w)^exponent.
    double exponent_ = 1;
    double linear_ = 0;          // share of the requests in full epochs
    std::vector<double> table_;  // m at 0/n, 1/n, ... n/n of the dataset; empty: the formula
};

}  // namespace stoker::control
