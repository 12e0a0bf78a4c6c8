#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "common/runtime/event_loop.h"
#include "sidecar/config/sidecar_config.h"
#include "sidecar/core/bypass_controller.h"
#include "sidecar/engine/dataset_engine.h"
#include "sidecar/origin/origin.h"
#include "sidecar/service/preparation.h"
#include "sidecar/service/sidecar_parts.h"
#include "wire/control/report.h"

namespace stoker::sidecar {

// A leader's report and the numbers that only metrics and the status page show. `error`: the reason
// of a failed preparation, or the last error since.
struct LeaderStatus : control::DatasetReport {
    ByteAccount bytes;
    EngineCounters counters;
    StoreUsage usage;
    Bytes window_size{};  // that the window may have now, bytes borrowed from the grant included
    bool aside = false;   // bypassing the cache: the disk is slower than the origin (see `error`)
};

// One revision of a dataset while its leader serves it: engine, store and origin. Executes the
// engine's decisions and monitors the disk; does not know sessions. Use it on the loop's thread;
// the origin's threads and the pool only post to it.
class ServedDataset {
public:
    // Before it returns, the store's samples are known and the engine is open. `on_forbidden`: the
    // origin refused our credentials for several reads in a row; may be called again.
    ServedDataset(
        const SidecarParts& parts,
        const DatasetConfig& config,
        Origin& origin,
        Preparation prepared,
        EngineGrant grant,
        const JobWeights& weights,
        std::function<void(const Error&)> on_forbidden);
    ServedDataset(const ServedDataset&) = delete;
    ServedDataset& operator=(const ServedDataset&) = delete;

    [[nodiscard]] const domain::ManifestView& manifest() const { return manifest_->view(); }

    [[nodiscard]] DatasetEngine& engine() { return *engine_; }

    [[nodiscard]] NodeStore& store() { return *store_; }

    // Sets who gets the engine's answers to fetches. Call it before the first fetch.
    void set_on_reply(std::function<void(const FetchReply&)> on_reply) {
        on_reply_ = std::move(on_reply);
    }

    // Executes the engine's effects; does nothing after retire().
    void apply(Effects effects);

    // Applies the operator's grant. The disk may allow less.
    void set_grant(EngineGrant grant);

    // Runs `work` on the pool, then `then` on the loop.
    void on_pool(std::function<void()> work, std::function<void()> then);

    // Adds the numbers since serving began.
    void tell(LeaderStatus& status) const;

    // Starts no new work. Calls `on_idle` when neither the origin nor the pool uses this object, so
    // that it may be destroyed.
    void retire(std::function<void()> on_idle);

private:
    [[nodiscard]] EngineGrant effective_grant() const;
    void start_fetch(const StartFetch& fetch, TimePoint started_at, std::uint32_t attempts);
    void on_origin_bytes(const StartFetch& fetch, TimePoint started_at, Result<OriginBytes> bytes);
    void on_fetch_failed(const StartFetch& fetch, TimePoint started_at, const Error& error);
    void on_append_done(
        const StartFetch& fetch,
        const Status& status,
        const FetchTimes& times,
        Duration request_time);
    void start_verify(SampleIndex sample);
    void schedule_tick();
    void end_work();
    void note_forbidden(const Error& error);
    void note_changed(SampleIndex sample, const Error& error);
    void upkeep();
    void watch_disk();
    void clean(const StoreUsage& usage);

    SidecarParts parts_;
    const DatasetConfig& config_;
    Origin& origin_;
    std::function<void(const Error&)> on_forbidden_;
    std::function<void(const FetchReply&)> on_reply_;
    EngineGrant grant_;
    std::unique_ptr<MappedManifest> manifest_;
    std::unique_ptr<NodeStore> store_;
    std::unique_ptr<DatasetEngine> engine_;
    Bytes resident_cap_ = Bytes::unlimited();  // the disk's limit, independent of the grant
    Bytes kept_free_{};                        // disk space to leave free, for that limit
    bool compacting_ = false;
    Bytes compacted_at_{};  // StoreUsage::written_bytes at the last cleaner run
    BypassController bypass_;
    std::size_t busy_ = 0;  // running fetches and pool tasks
    bool retiring_ = false;
    std::function<void()> on_idle_;
    std::uint32_t forbidden_in_row_ = 0;
    std::string changed_key_;
    std::optional<TimePoint> tick_at_;
    std::uint64_t origin_requests_ = 0;
    Bytes origin_bytes_{};
    Duration origin_request_time_{};
    LoopTimer tick_timer_;
    LoopTimer upkeep_timer_;
    LoopTasks tasks_;
};

}  // namespace stoker::sidecar
