#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sidecar/core/sampling/exact_order.h"
#include "sidecar/core/sampling/party_scans.h"
#include "sidecar/engine/sampler_service.h"
#include "sidecar/engine/shared_importance.h"

namespace stoker::sidecar {

// The contracts that this sidecar draws under, with their parameters from the trainer's side
// (docs/reference/sampling-contracts.md), and what the jobs on one dataset share: the scans of
// those that read `windowed`, one a party, and the importance that those that measure it give its
// samples together. Belongs to the loop's thread.
class Contracts final : public SamplerSource {
public:
    // `window_samples`: how many samples of mean size the node's window holds. `size_of`: where
    // sizes differ. `chunk_samples`: how many neighbours are one chunk for those who shuffle
    // chunks.
    Contracts(
        std::uint32_t sample_count,
        std::uint32_t window_samples,
        SharedImportance::SizeOf size_of = {},
        std::uint32_t chunk_samples = 1);
    ~Contracts() override;

    Result<std::unique_ptr<Sampler>> make(
        const Residency& node, const SamplerSettings& settings, std::uint32_t rank) override;
    [[nodiscard]] bool is_per_rank(const std::string& contract) const override;

    void on_stored(SampleIndex sample, bool kept) override { scans_.on_stored(sample, kept); }

    void on_gone(SampleIndex sample) override { scans_.on_gone(sample); }

    // What the jobs give their samples together.
    [[nodiscard]] SharedImportance& importance() override { return importance_; }

    [[nodiscard]] const SharedImportance& importance() const { return importance_; }

    // For the engine: knows what jobs that read `windowed` still need. nullptr: there was none yet.
    [[nodiscard]] const WindowKeeper* window_keeper() const {
        return scans_.is_empty() ? nullptr : &scans_;
    }

private:
    Result<SharedScan*> scan_of(const Residency& node, const SamplerSettings& settings);
    Result<std::unique_ptr<Sampler>> make_windowed(
        const Residency& node, const SamplerSettings& settings, std::uint32_t rank);
    [[nodiscard]] std::unique_ptr<Sampler> make_chunked(
        const EpochShape& shape, std::uint32_t group) const;

    std::uint32_t sample_count_;
    std::uint32_t window_samples_;
    std::uint32_t chunk_samples_;
    SharedImportance::SizeOf size_of_;  // empty: all alike
    PartyScans scans_;                  // of jobs that read windowed
    SharedImportance importance_;
};

}  // namespace stoker::sidecar
