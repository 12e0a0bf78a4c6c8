#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "common/domain/contract_table.h"
#include "sidecar/core/sampling/epoch_permutation.h"
#include "sidecar/core/sampling/loss_ranks.h"
#include "sidecar/core/sampling/loss_ring.h"

namespace stoker::sidecar {

struct ImportanceWalkSettings {
    std::uint64_t seed = 0;
    std::uint32_t ranks = 1;
    double beta = domain::standard_of("importance", "beta");
    // Share of what is kept: the H-samples.
    double h_share = domain::standard_of("importance", "hShare");
    std::uint32_t loss_history = domain::standard_of("importance", "lossHistory");
};

// One rank's way through one epoch under IIS (iCACHE, HPCA 2023): which samples of its share it
// reads and which it leaves out, decided before anything is fetched.
//
// A selective epoch keeps a sample with probability percentile^beta, by its last loss among those
// of the R samples walked past before it; 1/(1+beta) of all remain. The share of kept samples below
// the percentile t is t^(1+beta), so the most important 70 % of them are those above
// 0.3^(1/(1+beta)): the flag comes from the loss of the sample itself. A sample that nobody has
// measured is kept, and important.
//
// Departures from the published sampler: the ring begins filled with the last R samples of the
// share, not empty, so that no epoch begins with R samples that are kept for want of a history; and
// with several ranks all read equally many samples (a rank that kept too few takes back what it
// left out, one that kept too many stops), since DDP hangs otherwise.
//
// Decisions are remembered (two bits a sample of the share), so walking the same epoch again meets
// the same samples, whatever losses came in between. Not thread-safe. Deterministic.
class ImportanceWalk {
public:
    struct Step {
        SampleIndex sample = 0;
        bool important = true;
        std::int32_t left_out = 0;  // how many were since the step before; -1: this one was
    };

    ImportanceWalk(std::uint32_t count, const ImportanceWalkSettings& settings, std::uint32_t rank);

    // A new epoch; `full`: everything is read. `losses` serve to fill the ring.
    void begin(std::uint64_t epoch, bool full, const LossRanks& losses);

    // The same epoch from its start.
    void rewind();

    std::optional<Step> next(const LossRanks& losses);

    // The step that next() gave last is not read after all, and does not count as one.
    void give_back() { steps_ -= full_ ? 0 : 1; }

    // How many steps the epoch has at most; with several ranks, exactly.
    [[nodiscard]] std::uint32_t steps_max() const { return full_ ? turns_ : steps_max_; }

    [[nodiscard]] std::uint64_t epoch() const { return epoch_; }

    [[nodiscard]] bool full() const { return full_; }

    // How many samples of the share have been left out since the last step, once next() has given
    // nothing more.
    [[nodiscard]] std::uint32_t left_out_at_end() const { return left_out_; }

    // Is it this rank's to read in this epoch?
    [[nodiscard]] bool owns(SampleIndex sample) const {
        return settings_.ranks == 1 || order_.place_of(sample) % settings_.ranks == rank_;
    }

    // Samples below this percentile of the losses are unimportant.
    [[nodiscard]] static double important_from(double beta, double h_share);

    // What was decided so far in this epoch: one bit per turn each.
    [[nodiscard]] const std::vector<bool>& kept() const { return kept_; }

    [[nodiscard]] const std::vector<bool>& important() const { return important_; }

    [[nodiscard]] std::uint32_t decided() const { return decided_; }

    // Takes decisions over from an earlier process, after begin() of their epoch. False: they do
    // not fit.
    bool adopt(std::vector<bool> kept, std::vector<bool> important, std::uint32_t decided);

    // How many turns a rank has: the share, filled up with first samples where it does not divide.
    [[nodiscard]] std::uint32_t turns() const { return turns_; }

    [[nodiscard]] std::size_t memory_bytes() const;

private:
    [[nodiscard]] SampleIndex sample_at(std::uint32_t turn) const;
    [[nodiscard]] SampleIndex upcoming(std::uint32_t turn, const LossRanks& losses);
    void fill_ring(const LossRanks& losses);
    void decide(std::uint32_t turn, const LossRanks& losses);
    [[nodiscard]] std::optional<Step> take_back();

    std::uint32_t count_;
    ImportanceWalkSettings settings_;
    std::uint32_t rank_;
    std::uint32_t turns_;
    std::uint32_t steps_max_;  // in a selective epoch
    std::uint32_t ring_enough_;
    double important_from_;

    std::uint64_t epoch_ = 0;
    bool full_ = true;
    EpochPermutation order_;
    LossRing ring_;
    std::vector<bool> kept_;
    std::vector<bool> important_;
    std::uint32_t decided_ = 0;  // turns

    std::array<SampleIndex, 32> upcoming_ = {};  // samples of the turns from upcoming_from_ on
    std::uint32_t upcoming_from_ = 0;
    std::uint32_t upcoming_count_ = 0;

    std::uint32_t turn_ = 0;
    std::uint32_t taken_back_ = 0;  // turns looked at for that
    std::uint32_t steps_ = 0;
    std::uint32_t left_out_ = 0;
};

}  // namespace stoker::sidecar
