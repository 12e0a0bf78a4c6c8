#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <vector>

#include "common/base/result.h"
#include "sidecar/core/fetch_engine.h"
#include "sidecar/engine/contracts.h"
#include "sidecar/engine/sampler_service.h"
#include "sidecar/engine/window_size.h"

namespace stoker::sidecar {

// All decisions about one dataset on one node: what is fetched, kept and dropped (fetch()), and
// what jobs under sampling contracts read (samplers()). The samplers query the fetch engine for
// what is stored; the samples they foresee are its plan. Sans-io, as FetchEngine is: every event
// has a `now`, and Effects lists the work to do. The leader drives it with an origin and a disk,
// `stoker simulate` with virtual ones. Not thread-safe: one owner.
class DatasetEngine {
public:
    // Without `eviction`, the residents that jobs find important stay; all stay while no job
    // measures importance. `chunks`: where the samples lie, if they are in chunks.
    DatasetEngine(
        const SampleSizes& sizes,
        EngineLimits limits,
        EngineGrant grant,
        std::unique_ptr<EvictionPolicy> eviction = nullptr,
        SampleChunks chunks = {});
    DatasetEngine(const DatasetEngine&) = delete;
    DatasetEngine& operator=(const DatasetEngine&) = delete;
    ~DatasetEngine() = default;

    // Access for the events that do not concern contracts: reads, fetches, grants.
    [[nodiscard]] FetchEngine& fetch() { return fetch_; }

    [[nodiscard]] const FetchEngine& fetch() const { return fetch_; }

    [[nodiscard]] SamplerService& samplers() { return samplers_; }

    [[nodiscard]] SharedImportance& importance() { return contracts_.importance(); }

    [[nodiscard]] const SharedImportance& importance() const { return contracts_.importance(); }

    // A request to the origin took `time` from its sending to its last byte; zero: not measured.
    void note_load(Bytes size, Duration time) { contracts_.note_load(size, time); }

    // Registers a sample that the store found when it opened. Only before any other event.
    void adopt(SampleIndex sample, domain::SegmentClass segment_class);

    // The rank and job that read over the connection.
    struct Reader {
        ConnectionId connection{};
        StreamId stream{};
        std::uint64_t sidecar = 0;
        Party party = kOwnParty;
    };

    // As SamplerService::begin(); `effects` receives the resulting work, nothing on an error.
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

    // Call when the stream's connection has ended, or when it no longer reads under a contract.
    void leave(StreamId stream);

    // FetchEngine::on_consumed() and SamplerService::on_read().
    Effects on_consumed(
        ConnectionId connection,
        std::optional<StreamId> stream,
        std::uint64_t epoch,
        const std::vector<SampleIndex>& samples,
        TimePoint now,
        ReadCounts& counts);

    // Bytes that the window lacks, although it has borrowed the whole grant: unread draws and
    // lookaheads of several jobs do not fit. Zero: it has what it needs.
    [[nodiscard]] Bytes window_lack() const { return window_size_.needed() - fetch_.window(); }

    // Bytes that the window needs for the jobs that share it. Zero: fewer than two jobs share it,
    // or the operator has not sent a grant yet.
    [[nodiscard]] Bytes window_needed() const { return window_size_.needed(); }

private:
    Effects plan_ahead(ConnectionId connection, StreamId stream, TimePoint now);
    void size_window();

    const SampleChunks chunks_;
    bool keeps_by_importance_;
    Bytes standard_window_;
    Bytes mean_record_;
    WindowSize window_size_;
    std::uint64_t draws_noted_ = 0;
    Bytes scan_window_;           // the window's size with which the own party's scan plans
    std::set<StreamId> drawing_;  // streams that have begun under a contract and not left
    Contracts contracts_;
    FetchEngine fetch_;  // its eviction policy comes from the contracts
    SamplerService samplers_;
};

}  // namespace stoker::sidecar
