#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sidecar/core/sampling/loss_history.h"
#include "sidecar/core/sampling/loss_ranks.h"
#include "sidecar/core/sampling/sampler_settings.h"
#include "sidecar/core/sampling/share_walk.h"

namespace stoker::sidecar {

// One rank's pass through one epoch with I/O-oriented importance sampling (IIS; iCACHE, HPCA 2023).
// Decides which samples of its share the rank reads and which it leaves out, before any is fetched.
//
// A selective epoch keeps a sample with probability percentile^beta. The percentile is the position
// of the sample's last loss among the losses of the R = `lossHistory` samples before it; 1/(1+beta)
// of all samples are kept. The share of kept samples below percentile t is t^(1+beta), so the most
// important 0.7 of them are above 0.3^(1/(1+beta)). Step::important follows from the sample's own
// loss. An unmeasured sample is kept, and important.
//
// Departures from the published sampler: the history starts with the last R samples of the share
// instead of empty, so that the first R samples of an epoch are not all kept; and all ranks read
// equally many samples (ShareWalk).
//
// Decisions are stored (two bits per sample of the share), so a second walk of the same epoch gives
// the same samples, whatever losses were reported since. Not thread-safe. Deterministic.
class ImportanceWalk {
public:
    struct Step {
        SampleIndex sample = 0;
        bool important = true;
        std::int32_t left_out = 0;  // samples left out since the last step; -1: one taken back
    };

    ImportanceWalk(std::uint32_t count, const SamplerSettings& settings, std::uint32_t rank);

    // Begins an epoch; `full`: no sample is left out because of its loss. `losses` fill the history.
    void begin(std::uint64_t epoch, bool full, const LossRanks& losses);

    std::optional<Step> next(const LossRanks& losses);

    // The position in the rank's share; rewind() walks the same epoch again.
    [[nodiscard]] ShareWalk& share() { return share_; }

    [[nodiscard]] const ShareWalk& share() const { return share_; }

    [[nodiscard]] bool full() const { return full_; }

    // Samples below this percentile of the losses are unimportant.
    [[nodiscard]] static double important_from(double beta, double h_share);

    // Decisions of this epoch so far, one bit per position in the rank's share: kept() and
    // important().
    [[nodiscard]] const std::vector<bool>& kept() const { return kept_; }

    [[nodiscard]] const std::vector<bool>& important() const { return important_; }

    [[nodiscard]] std::uint32_t decided() const { return decided_; }

    // Restores decisions of an earlier process; call after begin() of their epoch. False: their
    // sizes do not match.
    bool adopt(std::vector<bool> kept, std::vector<bool> important, std::uint32_t decided);

private:
    void fill_history(const LossRanks& losses);
    void decide(std::uint32_t turn, SampleIndex sample, const LossRanks& losses);

    SamplerSettings settings_;
    ShareWalk share_;
    double beta_;
    double important_from_;
    std::uint32_t history_enough_;
    LossHistory history_;
    bool full_ = true;
    std::vector<bool> kept_;
    std::vector<bool> important_;
    std::uint32_t decided_ = 0;  // in turns
};

}  // namespace stoker::sidecar
