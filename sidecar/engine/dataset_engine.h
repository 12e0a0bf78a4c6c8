#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "common/base/result.h"
#include "sidecar/core/fetch_engine.h"
#include "sidecar/engine/contracts.h"
#include "sidecar/engine/sampler_service.h"

namespace stoker::sidecar {

// Everything that is decided about one dataset on one node: what is fetched, kept and dropped
// (fetch()), and what jobs under sampling contracts read (samplers()). The samplers ask the fetch
// engine what is stored, and what they foresee is its plan. Sans-io, as FetchEngine is: every event
// has a `now`, and what to do is in Effects. The leader drives it with an origin and a disk,
// `stoker simulate` with virtual ones. Not thread-safe: one owner.
class DatasetEngine {
public:
    // Without `eviction` the residents that stay are those that the jobs find important; all, while
    // no job measures importance.
    DatasetEngine(
        const SampleSizes& sizes,
        EngineLimits limits,
        EngineGrant grant,
        std::unique_ptr<EvictionPolicy> eviction = nullptr);
    DatasetEngine(const DatasetEngine&) = delete;
    DatasetEngine& operator=(const DatasetEngine&) = delete;
    ~DatasetEngine() = default;

    // Events that are not about contracts go to it.
    [[nodiscard]] FetchEngine& fetch() { return fetch_; }

    [[nodiscard]] const FetchEngine& fetch() const { return fetch_; }

    [[nodiscard]] SamplerService& samplers() { return samplers_; }

    [[nodiscard]] SharedImportance& importance() { return contracts_.importance(); }

    [[nodiscard]] const SharedImportance& importance() const { return contracts_.importance(); }

    // What the store found when it opened; before any other event.
    void adopt(SampleIndex sample, domain::SegmentClass segment_class);

    // Whose rank of which job reads over the connection.
    struct Reader {
        ConnectionId connection{};
        StreamId stream{};
        std::uint64_t sidecar = 0;
        Party party = kOwnParty;
    };

    // As SamplerService's; `effects` are what to do then. Nothing on an error.
    Result<local::Begun> begin(
        const Reader& reader,
        const local::Begin& begin,
        const BeginState& state,
        TimePoint now,
        Effects& effects);
    Result<local::Drawn> draw(
        ConnectionId connection,
        StreamId stream,
        const local::Draw& draw,
        TimePoint now,
        Effects& effects);

    // The stream's connection is gone, or it reads under no contract any more.
    void leave(StreamId stream);

    // FetchEngine::on_consumed(), and the service's on_read().
    Effects on_consumed(
        ConnectionId connection,
        std::optional<StreamId> stream,
        std::uint64_t epoch,
        const std::vector<SampleIndex>& samples,
        TimePoint now,
        ReadCounts& counts);

private:
    Effects plan_ahead(ConnectionId connection, StreamId stream, TimePoint now);

    bool keeps_by_importance_;
    Contracts contracts_;
    FetchEngine fetch_;  // its eviction goes by the contracts
    SamplerService samplers_;
};

}  // namespace stoker::sidecar
