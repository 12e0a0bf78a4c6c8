#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "proto/local/protocol.h"
#include "sidecar/config/contract_terms.h"
#include "sidecar/core/eviction/aggregated_importance.h"
#include "sidecar/core/eviction/importance_eviction.h"
#include "sidecar/core/sampling/windowed_scan.h"
#include "sidecar/service/frame_socket.h"
#include "sidecar/service/sampling_desk.h"

namespace stoker::sidecar {

// The contracts that this sidecar draws under, with their parameters from the trainer's side
// (docs/reference/sampling-contracts.md), and what the jobs on one dataset share: the scan of those
// that read `windowed`, and the importance that those that measure it give its samples together.
// Belongs to the loop's thread.
class Contracts final : public SamplerSource {
public:
    // `window_samples`: how many samples of mean size the node's window holds.
    Contracts(std::uint32_t sample_count, std::uint32_t window_samples);
    ~Contracts() override;

    Result<std::unique_ptr<Sampler>> make(const SamplerOrder& order, std::uint32_t rank) override;
    [[nodiscard]] bool is_per_rank(const std::string& contract) const override;
    void on_stored(SampleIndex sample, bool kept) override;
    void on_gone(SampleIndex sample) override;

    void set_active(const Sampler& sampler, bool active) override;
    void on_epoch(const Sampler& sampler, std::uint64_t epoch) override;

    // For the engine: knows what jobs that read `windowed` still need. nullptr: there was none yet.
    [[nodiscard]] const WindowKeeper* window_keeper() const { return scan_ ? &*scan_ : nullptr; }

    // For the engine, once jobs have given the samples importance: keeps what matters most to all
    // of them together. nullptr: no news. The engine must go before us.
    std::unique_ptr<EvictionPolicy> new_eviction();

private:
    struct ActiveJob {
        bool full_epoch = true;  // everything passes, whatever it matters
        std::uint64_t revision = 0;
        std::vector<float> ranks;  // when its epoch began, where asking costs more than a look
    };

    Result<std::unique_ptr<Sampler>> make_windowed(const SamplerOrder& order, std::uint32_t rank);
    Result<std::unique_ptr<Sampler>> make_importance(const SamplerOrder& order) const;
    Result<std::unique_ptr<Sampler>> make_buckets(const SamplerOrder& order) const;
    Result<std::unique_ptr<Sampler>> make_replicate(const SamplerOrder& order) const;

    std::uint32_t sample_count_;
    std::uint32_t window_samples_;
    std::vector<bool> stored_;
    std::vector<bool> kept_;
    std::optional<SharedScan> scan_;  // once a job reads windowed
    AggregatedImportance importance_;
    std::map<const Sampler*, ActiveJob> active_;  // those that measure importance
    ImportanceEviction* eviction_ = nullptr;      // the engine's
};

// A pod's clients get what its job allows: what they ask for, and the job's parameters where they
// say nothing, is put into a kBegin frame and into `begin`. kInvalidArgument: they ask for more.
Status limit_begin(Frame& frame, local::Begin& begin, const std::optional<ContractTerms>& allowed);

// A pod's clients speak for its own job, whatever they call it: puts `job_uid` (may be empty:
// nobody knows) before the name in a kBegin frame.
void stamp_job(Frame& frame, local::Begin begin, const std::string& job_uid);

}  // namespace stoker::sidecar
