#pragma once

#include <cstdint>
#include <vector>

#include "common/base/result.h"
#include "sidecar/core/sampling/clairvoyant_model.h"
#include "sidecar/simulate/scenario.h"

// `stoker simulate --policy nopfs`: one job with one rank per node and a known future (NoPFS, SC
// 2021). Counts come from replaying the seeded epochs, times from the paper's model.
namespace stoker::simulate {

using CurvePoints = std::vector<sidecar::BandwidthCurve::Point>;

// A storage class of every node. Rates in bytes per second, by threads.
struct TierSpec {
    double share = 0.2;  // of the dataset's bytes
    CurvePoints read = {{1, 2.0e9}};
    CurvePoints write = {{1, 1.0e9}};
    double threads = 2;  // that prefetch into the tier
};

enum class Placement : std::uint8_t {
    kOwn,     // each rank keeps the samples that it reads most often itself (NoPFS)
    kPooled,  // each sample has one owner: the rank with room that reads it most often
};

struct ClairvoyantSpec {
    std::uint32_t world = 4;
    Placement placement = Placement::kOwn;
    std::uint64_t threshold = 10;  // reads of one sample by one rank; see `above`
    std::vector<TierSpec> tiers;   // fastest first; empty: one tier with the scenario's cache share
    TierSpec staging = {0, {{1, 5.0e9}}, {{1, 5.0e9}}, 4};  // the buffer that the trainer reads
    CurvePoints origin;         // total by clients; empty: constant, the scenario's bandwidth
    double peer = 1.0e9;        // bytes per second between nodes
    double preprocess = 2.0e8;  // bytes per second that a thread decodes
};

// Totals of all ranks in one epoch.
struct ClairvoyantEpoch {
    std::uint64_t local = 0;   // reads from the rank's own tiers
    std::uint64_t peer = 0;    // from another rank's tiers
    std::uint64_t origin = 0;  // first reads of kept samples, and all reads of others
    Bytes origin_bytes{};
    double seconds = 0;  // until the slowest rank has finished

    bool operator==(const ClairvoyantEpoch&) const = default;
};

struct ClairvoyantFigures {
    std::uint64_t samples = 0;
    std::uint64_t reads = 0;        // of all ranks in the whole run
    double favourite_share = 0;     // of these: of samples that the reading rank keeps (law T6)
    double favourite_expected = 0;  // with Placement::kOwn, by the binomial distribution
    double above = 0;               // samples that a rank reads more than `threshold` times, mean
    double above_expected = 0;      // the same by the binomial distribution
    double origin_per_sample = 0;   // mean reads of a sample from the origin, whole run
    std::vector<ClairvoyantEpoch> epochs;

    bool operator==(const ClairvoyantFigures&) const = default;
};

// kInvalidArgument names the part that cannot be simulated. A run takes 3 bytes per rank and
// sample, and 8 more during placement.
Status check_clairvoyant(const Scenario& scenario, const ClairvoyantSpec& spec);
Result<ClairvoyantFigures> run_clairvoyant(const Scenario& scenario, const ClairvoyantSpec& spec);

}  // namespace stoker::simulate
