#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "common/runtime/event_loop.h"
#include "sidecar/config/sidecar_config.h"
#include "sidecar/core/bypass_controller.h"
#include "sidecar/engine/dataset_engine.h"
#include "sidecar/origin/origin.h"
#include "sidecar/service/loss_sender.h"
#include "sidecar/service/parts_fetcher.h"
#include "sidecar/service/peer_fetches.h"
#include "sidecar/service/preparation.h"
#include "sidecar/service/sidecar_parts.h"
#include "wire/control/orders.h"
#include "wire/control/report.h"

namespace stoker::sidecar {

// A leader's report, and numbers that only the metrics and the status page show. `error`: why the
// preparation failed, or the last error since.
struct LeaderStatus : control::DatasetReport {
    ByteAccount bytes;
    EngineCounters counters;
    StoreUsage usage;
    Bytes window_size{};  // that the window may take now, bytes borrowed from the grant included
    std::uint32_t origin_concurrency = 0;  // fetches that may be in flight to the origin now
    std::uint64_t manifests_listed = 0;    // manifests that this lead got by listing the origin
    std::uint64_t manifests_taken = 0;     // manifests that this lead copied from another node
    std::size_t peer_members = 0;          // nodes that share the samples, we included; 0: no group
    std::uint64_t taken_over_samples = 0;  // the next three: as in PeerTotals
    std::uint64_t take_overs_lacked = 0;
    std::uint64_t take_overs_failed = 0;
    bool by_reads = false;  // the samples are placed by KnownReads, not by the hash
    bool aside = false;     // bypassing the cache: the disk is slower than the origin (see `error`)
};

// One revision of a dataset while its leader serves it: engine, store and origin. Executes the
// engine's decisions and monitors the disk; does not know sessions. Use it on the loop's thread;
// the origin's threads and the pool only post to it.
class ServedDataset {
public:
    // The constructor tells the engine the store's samples and opens the engine. `on_forbidden`:
    // the origin denied our credentials for several reads in a row; may be called again.
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

    // The first object that differed from the listing when it was fetched; empty: none.
    [[nodiscard]] const std::string& changed_key() const { return changed_key_; }

    [[nodiscard]] DatasetEngine& engine() { return *engine_; }

    [[nodiscard]] NodeStore& store() { return *store_; }

    // Sets who gets the engine's answers to fetches. Call it before the first fetch.
    void set_on_reply(std::function<void(const FetchReply&)> on_reply) {
        on_reply_ = std::move(on_reply);
    }

    // Sets who gets the engine's answers to peers; it returns false for an answer that is not its
    // own.
    void set_on_peer_reply(std::function<bool(const FetchReply&)> on_reply) {
        on_peer_reply_ = std::move(on_reply);
    }

    // Asks other nodes for the samples that they own, and tells them the losses of jobs that also
    // read there. Call it once, before set_group(). Needs SidecarParts::peers.
    void join_peers(PeerSelf self);

    // Requests a sample for the peer `node`, as its party. Only after join_peers().
    void fetch_for_peer(
        const std::string& node, ConnectionId id, std::uint64_t request, SampleIndex sample);

    // Sets the nodes that share the samples. Owners change once every sample is placed: by the
    // group's reads if they fit this revision, else by the hash of its key. If the group lacks us
    // or has no other node, we own every sample.
    void set_group(const control::PeerGroup& group);

    // The reads that the last group has; nullptr: none.
    [[nodiscard]] const control::KnownReads* known_reads() const {
        return group_.reads ? &*group_.reads : nullptr;
    }

    // A rank of the known reads' job reads in another order; reported until the group has other
    // reads, or reads anew. Ignored if `reads` are no longer the group's.
    void note_reads_differ(const control::KnownReads& reads);

    // Executes the engine's effects; does nothing after retire().
    void apply(Effects effects);

    // Applies the operator's grant. The disk may allow less.
    void set_grant(EngineGrant grant);

    // Runs `work` on the pool, then `then` on the loop.
    void on_pool(std::function<void()> work, std::function<void()> then);

    // Fills in `status`; totals count from the time that serving began.
    void tell(LeaderStatus& status) const;

    // Frees the space of incomplete samples. Call it before the store closes, when neither the
    // origin nor the pool runs any more.
    void drop_unfinished() { parts_fetcher_->drop_unfinished(); }

    // Starts no new work. Calls `on_idle` when neither the origin nor the pool uses this object, so
    // that it may be destroyed.
    void retire(std::function<void()> on_idle);

private:
    // A fetch that begins at a peer, until its sample is stored or has failed.
    struct PeerFetch {
        StartFetch fetch;
        std::string from{};  // the node whose answer is being stored; empty: no answer has come
        bool at_origin = false;
        std::uint64_t hedge = 0;  // number of the sample's last fetch from the origin
    };

    // A fetch from the origin that runs besides a request to a peer.
    struct Hedge {
        SampleIndex sample = 0;
        std::uint64_t number = 0;
        TimePoint started_at{};
    };

    [[nodiscard]] EngineGrant effective_grant() const;
    void start_fetches(const std::vector<StartFetch>& fetches);
    void start_at_origin(
        const std::vector<StartFetch>& fetches, TimePoint started_at, std::uint32_t attempts);
    [[nodiscard]] std::unique_ptr<PartsFetcher> make_parts_fetcher(const EngineLimits& limits);
    [[nodiscard]] Bytes unfinished_residents() const;
    bool take_part(SampleIndex sample, Bytes bytes);
    void on_parts_end(const PartsFetcher::Ended& ended);
    void start_at_peer(const StartFetch& fetch);
    void start_hedge(SampleIndex sample);
    void await_hedge(SampleIndex sample);
    void on_hedge_answer(const Hedge& hedge, const std::shared_ptr<OriginAnswer>& answer);
    void on_peer_bytes(
        SampleIndex sample, HeldBytes bytes, std::uint32_t crc32c, const std::string& from);
    void on_peer_stored(SampleIndex sample, const Status& status);
    StartFetch end_peer_fetch(SampleIndex sample);
    void leave_peers();
    void place(
        const control::PeerGroup& group, const std::vector<std::string>& nodes, std::size_t self);
    void install(std::shared_ptr<const Placement> placement, const control::PeerGroup& group);
    void tell_peers(LeaderStatus& status) const;
    void tell_fill(LeaderStatus& status) const;
    void set_placing(bool placing);
    void on_stored(SampleIndex sample, const Status& status);
    void store_origin_bytes(
        const StartFetch& fetch, TimePoint started_at, std::shared_ptr<OriginBytes> bytes);
    void on_origin_answer(const StartFetch& fetch, TimePoint started_at, OriginAnswer answer);
    // `requests`: OriginAnswer::failed_requests.
    void on_fetch_failed(
        const StartFetch& fetch, TimePoint started_at, const Error& error, std::uint32_t requests);
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
    std::function<bool(const FetchReply&)> on_peer_reply_;
    EngineGrant grant_;
    std::shared_ptr<const MappedManifest> manifest_;
    std::unique_ptr<NodeStore> store_;
    std::unique_ptr<DatasetEngine> engine_;
    std::unique_ptr<PartsFetcher> parts_fetcher_;
    Bytes resident_cap_ = Bytes::unlimited();  // limit that the disk sets, independent of the grant
    Bytes kept_free_{};                        // disk space to leave free (resident_cap_)
    bool compacting_ = false;
    Bytes compacted_at_{};             // StoreUsage::written_bytes at the last cleaner run
    std::string node_;                 // name of our own node in the group
    control::PeerGroup group_;         // the last one that was set
    std::vector<std::string> placed_;  // the nodes of the engine's placement; empty: none
    std::optional<control::KnownReads> placed_reads_;  // by which they are placed
    bool reads_differ_ = false;
    std::shared_ptr<const Placement> placement_;
    bool placing_ = false;  // the owners by group_ are being computed
    std::unique_ptr<PeerFetches> peers_;
    std::unique_ptr<LossSender> losses_;  // set while other nodes can be told of losses
    std::unordered_map<SampleIndex, PeerFetch> peer_fetches_;
    std::uint64_t last_hedge_ = 0;
    std::unordered_map<SampleIndex, std::uint64_t> hedges_;  // fetch numbers of the running ones
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
