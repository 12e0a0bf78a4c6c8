#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/prng.h"
#include "common/base/result.h"
#include "common/base/wire.h"
#include "sidecar/core/eviction/read_curve.h"
#include "sidecar/core/sampling/importance_packages.h"
#include "sidecar/core/sampling/importance_walk.h"
#include "sidecar/core/sampling/loss_ranks.h"
#include "sidecar/core/sampling/resumed_epoch.h"
#include "sidecar/core/sampling/sampler.h"

namespace stoker::sidecar {

// The contract `importance` of the iCACHE family (HPCA 2023): the warm-up epochs and every
// reuse_factor-th epoch are full; all others use I/O-oriented importance sampling (ImportanceWalk).
//
// Only a request for an unimportant, absent sample (an "L-request") is ever substituted. The
// stand-in must be stored, unimportant itself, in the share of the requesting rank, and not yet
// read by that rank in this epoch. Stand-ins are chosen ahead: a stored one while there is any;
// after that, in foresee(), the next sample of a package (neighbours in the dataset's order). The
// sidecar sends the origin one request per stand-in, so a package saves no request; neighbours are
// cheaper only where the origin itself reads ahead. An L-request whose stand-in is not stored in
// time reads its own sample.
//
// If no loss has arrived by the end of the warm-up, epochs stay full and report().exact_fallback is
// true. Losses are accepted from any rank, for any sample: they apply to the ids that come with
// them, which are the ids that were served.
//
// Deterministic. Not thread-safe. Per sample and job: 12 bytes and one bit, and per local rank four
// bits. A draw costs well under a microsecond. Once per epoch the importance ranks are rebuilt in
// slices of draw() (at once if a quarter million steps suffice); then the stored samples that have
// become unimportant join the list of stored stand-ins.
class ImportanceSampler final : public Sampler {
public:
    struct Tuning {
        std::uint32_t package = 64;    // neighbouring samples that stand in one after another
        std::uint32_t horizon = 2048;  // draws decided ahead
    };

    // kInvalidArgument names the parameter.
    static Result<std::unique_ptr<ImportanceSampler>> create(
        const Residency& node,
        std::uint32_t count,
        const SamplerSettings& settings,
        const Tuning& tuning);

    static Result<std::unique_ptr<ImportanceSampler>> create(
        const Residency& node, std::uint32_t count, const SamplerSettings& settings) {
        return create(node, count, settings, {});
    }

    void on_stored(SampleIndex sample) override;
    void begin_epoch(std::uint32_t rank, std::uint64_t epoch, std::uint64_t skip) override;
    void resume_epoch(
        std::uint32_t rank,
        std::uint64_t epoch,
        std::uint64_t skip,
        const std::vector<bool>& served) override;
    void draw(std::uint32_t rank, std::size_t count, std::vector<Draw>& draws) override;
    void foresee(
        std::uint32_t rank, std::size_t count, std::vector<SampleIndex>& samples) const override;
    void on_losses(
        std::uint32_t rank,
        std::span<const SampleIndex> samples,
        std::span<const float> losses) override;
    [[nodiscard]] EpochReport report(std::uint32_t rank) const override;
    [[nodiscard]] std::span<const float> relative_importance() const override;
    [[nodiscard]] std::string snapshot() const override;
    bool restore(std::string_view snapshot) override;

    // Incremented when relative_importance() has been rebuilt: the caller should refresh an
    // eviction policy.
    [[nodiscard]] std::uint64_t importance_revision() const { return losses_.revision(); }

    // Samples whose relative importance is below the result may be substituted. 0: none may be.
    [[nodiscard]] double important_from() const { return substitute_ ? important_from_ : 0; }

    // How often the job reads a sample, by its relative importance.
    [[nodiscard]] ReadCurve read_curve() const;

    // Share of the resident bytes to reserve for stand-ins (ImportanceEviction's L-region).
    // nullopt: the job takes no stand-ins.
    [[nodiscard]] std::optional<double> l_share() const {
        return substitute_ ? std::optional{settings_.number("lShare")} : std::nullopt;
    }

    // Whether `epoch` reads all samples. If so, an eviction policy should evict nothing.
    [[nodiscard]] bool is_full(std::uint64_t epoch) const { return settings_.reads_all(epoch); }

private:
    struct Planned {
        ImportanceWalk::Step step;
        std::optional<SampleIndex> stand_in;

        // The sample to fetch for this step.
        [[nodiscard]] SampleIndex expected() const { return stand_in.value_or(step.sample); }
    };

    struct Reader : RankEpoch {
        Reader(std::uint32_t count, const SamplerSettings& settings, std::uint32_t rank);

        ImportanceWalk walk;
        std::deque<Planned> ahead;
        bool begun = false;
        bool all_planned = false;
        std::vector<bool> promised;  // reserved by a draw ahead, for itself or as a stand-in
        PackageCursor packages{1, 1, 0, 0};
        std::uint32_t pool_cursor = 0;
    };

    ImportanceSampler(
        const Residency& node,
        std::uint32_t count,
        const SamplerSettings& settings,
        const Tuning& tuning);

    Reader& reader_of(std::uint32_t rank);
    void rebuild_ranks(std::uint64_t epoch);
    void advance_ranks(std::uint64_t steps);
    Reader& open_epoch(std::uint32_t rank, std::uint64_t epoch);
    void restart(Reader& reader, std::optional<ResumedEpoch> rest = std::nullopt);
    void plan_ahead(Reader& reader, std::size_t count);
    std::optional<ImportanceWalk::Step> next_step(Reader& reader);
    [[nodiscard]] bool may_substitute(const ImportanceWalk::Step& step) const;
    void promise_stand_in(Reader& reader, Planned& planned);
    [[nodiscard]] bool is_unimportant(SampleIndex sample) const;
    [[nodiscard]] bool is_fresh(const Reader& reader, SampleIndex sample) const;
    std::optional<SampleIndex> take_from_pool(Reader& reader);
    Draw serve(Reader& reader, const Planned& planned);
    bool restore_readers(WireReader& wire);

    const Residency& node_;
    SamplerSettings settings_;
    bool substitute_;
    Tuning tuning_;
    double important_from_;
    LossRanks losses_;
    std::vector<bool> pooled_;
    std::vector<SampleIndex> pool_;    // unimportant samples on the node; checked again when taken
    std::uint64_t pool_revision_ = 0;  // importance_revision() for which the pool was refilled
    SampleIndex refill_from_;          // next sample of the refill; count(): it has ended
    Prng pool_luck_;
    std::map<std::uint32_t, Reader> readers_;
    std::uint64_t rebuilt_for_ = 0;  // epoch + 1 of the last rebuild
};

}  // namespace stoker::sidecar
