#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/prng.h"
#include "common/base/result.h"
#include "common/base/wire.h"
#include "sidecar/core/sampling/exact_order.h"
#include "sidecar/core/sampling/sampler.h"
#include "sidecar/core/sampling/windowed_scan.h"

namespace stoker::sidecar {

// The contract `windowed`: every sample exactly once per epoch and job, in an order of ours. All
// jobs on one dataset and node share one SharedScan, so that one fetch serves them all.
//
// The ranks of a job divide each epoch by the permutation of its seed (exact_order.h), so their
// shares fit together whatever each node has in store; only the order inside a rank's share depends
// on that. For one rank alone the share is everything. One sampler serves one rank.
//
// A padded sample (Tail::kPad) comes as Draw::kRepeated: the rank whose own it is reads it as well.
// A dropped tail counts as skipped by rank 0.
class WindowedSampler final : public Sampler {
public:
    // kInvalidArgument: an empty dataset, another one than the scan's, a rank outside the shape;
    // kResourceExhausted: the scan has no room for more readers. `scan` must outlive the sampler,
    // which leaves it at its end.
    static Result<std::unique_ptr<WindowedSampler>> make(
        SharedScan& scan, const EpochShape& shape, std::uint32_t rank);

    ~WindowedSampler() override;
    WindowedSampler(const WindowedSampler&) = delete;
    WindowedSampler& operator=(const WindowedSampler&) = delete;

    // After restore(), the epoch of the snapshot goes on behind its first `skip` draws: those are
    // not drawn again, what came after them is. Otherwise `skip` draws are drawn and forgotten.
    void begin_epoch(std::uint32_t rank, std::uint64_t epoch, std::uint64_t skip) override;
    void draw(std::uint32_t rank, std::size_t count, std::vector<Draw>& draws) override;

    // The part of the scan's feed that this rank needs.
    void foresee(
        std::uint32_t rank, std::size_t count, std::vector<SampleIndex>& samples) const override;

    void on_losses(
        std::uint32_t rank,
        std::span<const SampleIndex> samples,
        std::span<const float> losses) override;

    [[nodiscard]] EpochReport report(std::uint32_t rank) const override;

    // Epoch, position, one bit a sample of the rank's share, the latest draws.
    [[nodiscard]] std::string snapshot() const override;
    bool restore(std::string_view snapshot) override;

private:
    struct Resume {
        std::uint64_t epoch = 0;
        std::vector<bool> read;           // by position in the share
        std::vector<SampleIndex> recent;  // the last draws, in order
        std::uint64_t position = 0;
    };

    WindowedSampler(
        SharedScan& scan, const EpochShape& shape, std::uint32_t rank, SharedScan::Reader reader);

    [[nodiscard]] std::vector<SampleIndex> share() const;
    void go_on(const Resume& resume, std::uint64_t skip);

    SharedScan& scan_;
    EpochShape shape_;
    std::uint32_t rank_;
    SharedScan::Reader reader_;
    Prng prng_{0};
    EpochReport report_;
    std::optional<SampleIndex> padding_;
    std::deque<SampleIndex> recent_;
    std::optional<Resume> resume_;
};

}  // namespace stoker::sidecar
