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

// The contract `windowed`: every sample exactly once per epoch and job, in an order that the
// sidecar chooses. All jobs on one dataset and node share one SharedScan, so one fetch serves them
// all.
//
// The ranks of a job divide each epoch by the permutation of its seed (exact_order.h), so their
// shares are independent of what each node stores; only the order inside a share depends on it. A
// single rank's share is the whole dataset. One sampler serves one rank.
//
// A padding sample (Tail::kPad) is Draw::kRepeated, because another rank's share has it, too. A
// dropped tail counts as skipped by rank 0.
class WindowedSampler final : public Sampler {
public:
    // kInvalidArgument: an empty dataset, a size that is not the scan's, a rank outside the shape;
    // kResourceExhausted: the scan has no room for more readers. `scan` must outlive the sampler;
    // the destructor removes its reader from the scan.
    static Result<std::unique_ptr<WindowedSampler>> make(
        SharedScan& scan, const EpochShape& shape, std::uint32_t rank);

    ~WindowedSampler() override;
    WindowedSampler(const WindowedSampler&) = delete;
    WindowedSampler& operator=(const WindowedSampler&) = delete;

    // After restore(), the snapshot's epoch continues after its first `skip` draws, which are not
    // repeated; later draws are. Otherwise `skip` draws are drawn and discarded.
    void begin_epoch(std::uint32_t rank, std::uint64_t epoch, std::uint64_t skip) override;
    void draw(std::uint32_t rank, std::size_t count, std::vector<Draw>& draws) override;

    // Foresees the samples of the scan's feed that this rank needs.
    void foresee(
        std::uint32_t rank, std::size_t count, std::vector<SampleIndex>& samples) const override;

    void on_losses(
        std::uint32_t rank,
        std::span<const SampleIndex> samples,
        std::span<const float> losses) override;

    [[nodiscard]] EpochReport report(std::uint32_t rank) const override;

    // Contains the epoch, position, one bit per sample of the rank's share, and the latest draws.
    [[nodiscard]] std::string snapshot() const override;
    bool restore(std::string_view snapshot) override;

private:
    struct Resume {
        std::uint64_t epoch = 0;
        std::vector<bool> read;           // one flag per position in the share
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
