#pragma once

#include <memory>
#include <string>

#include "sidecar/core/sample_chunks.h"
#include "sidecar/core/sampling/exact_order.h"
#include "sidecar/core/sampling/load_time.h"
#include "sidecar/core/sampling/party_scans.h"
#include "sidecar/engine/sampler_service.h"
#include "sidecar/engine/shared_importance.h"

namespace stoker::sidecar {

// The sampling contracts that this sidecar serves, with the parameters that trainers send
// (docs/reference/sampling-contracts.md), and the state that the jobs on one dataset share: the
// `windowed` scans, one per party (core/eviction/party.h), and the importance that jobs measured
// for its samples. Use it on the loop's thread.
class Contracts final : public SamplerSource {
public:
    // `window_samples`: samples of mean size that fit into the node's window. `size_of`: set if
    // sizes differ. `chunks`: the samples that share a chunk; must outlive this object, nullptr:
    // none. `chunk_samples`: neighbours that a chunk-wise shuffle groups where `chunks` has no
    // chunk.
    Contracts(
        std::uint32_t sample_count,
        std::uint32_t window_samples,
        SharedImportance::SizeOf size_of = {},
        std::uint32_t chunk_samples = 1,
        const SampleChunks* chunks = nullptr);
    ~Contracts() override;

    Result<std::unique_ptr<Sampler>> make(
        const Residency& node, const SamplerSettings& settings, std::uint32_t rank) override;
    [[nodiscard]] bool is_per_rank(const std::string& contract) const override;

    void on_stored(SampleIndex sample, bool kept) override { scans_.on_stored(sample, kept); }

    void on_gone(SampleIndex sample) override { scans_.on_gone(sample); }

    // Does what DatasetEngine::note_load() says: IOWA's criteria use the load time.
    void note_load(Bytes size, Duration time);

    // Sets the window's present size, in samples of mean size. Guests' scans keep planning with the
    // standard window.
    void set_own_window(std::uint32_t samples) { scans_.set_own_window(samples); }

    // The combined importance of the samples to all jobs.
    [[nodiscard]] SharedImportance& importance() override { return importance_; }

    [[nodiscard]] const SharedImportance& importance() const { return importance_; }

    // For the engine: tells which samples `windowed` jobs still need. nullptr: no such job has
    // begun yet.
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
    const SampleChunks* chunks_;
    SharedImportance::SizeOf size_of_;  // empty: all sizes are equal
    LoadTime load_time_;                // of one sample at the origin
    PartyScans scans_;                  // one scan per party, for `windowed` jobs
    SharedImportance importance_;
};

}  // namespace stoker::sidecar
