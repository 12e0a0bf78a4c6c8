#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "common/base/bytes.h"
#include "common/base/clock.h"
#include "common/base/error.h"
#include "common/domain/residency_word.h"
#include "sidecar/core/cache_room.h"
#include "sidecar/core/demand_book.h"
#include "sidecar/core/engine_limits.h"
#include "sidecar/core/eviction/eviction_policy.h"
#include "sidecar/core/fetch_admission.h"
#include "sidecar/core/fill_scan.h"
#include "sidecar/core/party_shares.h"
#include "sidecar/core/refusals.h"
#include "sidecar/core/sample_chunks.h"
#include "sidecar/core/sample_table.h"
#include "sidecar/core/stream_plan.h"
#include "sidecar/core/stream_set.h"

namespace stoker::sidecar {

struct StartFetch {
    SampleIndex sample = 0;
    domain::SegmentClass segment_class = domain::SegmentClass::kWindow;
    bool from_peer = false;  // from another node; false: from the origin
    bool in_parts = false;   // in byte ranges, because it is too large for memory

    bool operator==(const StartFetch&) const = default;
};

// Work for the caller, to be done in this order: drops, stops, fetches, then the other members.
// Holds sample ids only, never payload.
struct Effects {
    std::vector<SampleIndex> drops;
    // Samples in parts that nobody wants any more: request no more parts, and call on_stopped()
    // once the running ones end, unless the fetch ends otherwise. May repeat a sample.
    std::vector<SampleIndex> stops;
    std::vector<StartFetch> fetches;    // each is answered by on_stored, on_stopped or a failure
    std::vector<SampleIndex> verifies;  // each is answered by on_verified
    std::vector<SampleIndex> will_need;
    std::vector<SampleIndex> wont_need;
    std::vector<FetchReply> replies;
};

// Counts, by source, the samples that a client has read; a sample that has left the node counts
// neither as a hit nor as fetched. A fetch counts only for the party that it was made for: another
// party's first read of the sample is a hit, and so is the first read of a sample fetched without a
// reader. A guest's report of reading samples fetched for others does not change their counts.
struct ReadCounts {
    std::uint64_t hit_samples = 0;      // reads that needed no traffic of ours with the origin
    Bytes hit_bytes{};                  // payload
    std::uint64_t fetched_samples = 0;  // first reads of samples that were fetched for this party
    Bytes fetched_bytes{};

    bool operator==(const ReadCounts&) const = default;
};

// Per-dataset fetch, admission and eviction state machine (sans-io): which sample is fetched when,
// where it is kept and when it is dropped. Every method takes an event and `now`, and returns the
// work to do.
//
// Guarantees. Every demand fetch is answered, whatever the origin and the disk do. At most one
// fetch of a sample is in flight. Resident record bytes never exceed the grant; with window record
// bytes they never exceed grant and window budget, both including fetches in flight; residents that
// lose their grant while a client holds them are counted separately until released. A window sample
// is dropped once no stream needs it and no client holds it; before that only to make room for a
// demand (the sample needed last is dropped first), or if it is needed later than every prefetched
// sample.
//
// A sample becomes resident while the grant has room, or if the eviction policy names residents
// that are worth less; otherwise it passes through the window. Residents are evicted only while no
// client holds or awaits them and no plan needs them within the range prefetched so far, so an
// eviction never undoes a prefetch. Without a policy nothing is evicted (NeverEvict).
//
// A grant may order that samples of which this node is the owner (core/placement.h) are fetched
// without a reader (core/fill_scan.h): in dataset order, as residents only, after everything that a
// reader wants. For these samples, only residents that other nodes own are evicted.
//
// Placement and eviction: core/cache_room.h. When the origin may be read: core/fetch_admission.h.
// Limits per party: core/party_shares.h.
//
// Not thread-safe: one owner. Ids in events must be below the count of `sizes`.
class FetchEngine {
public:
    FetchEngine(
        const SampleSizes& sizes,
        EngineLimits limits,
        EngineGrant grant,
        std::unique_ptr<EvictionPolicy> eviction = nullptr);
    FetchEngine(const FetchEngine&) = delete;
    FetchEngine& operator=(const FetchEngine&) = delete;
    ~FetchEngine() = default;

    // Sets the chunks of the samples. Not owned. Call it only before the first connection.
    void set_chunks(const SampleChunks* chunks) { chunks_ = chunks; }

    // The stream reads groups of chunks: a chunk of which the own party needs a sample is fetched
    // whole, ahead of need, as far as the plan goes and there is room. Without chunks: no effect.
    void set_by_chunk(StreamId stream, bool by_chunk) {
        streams_.set_by_chunk(stream, by_chunk && chunks_ != nullptr);
    }

    // Registers a sample that the store found when it opened. Only before open() and any other
    // event.
    void adopt(SampleIndex sample, domain::SegmentClass segment_class) {
        room_.adopt(sample, segment_class);
    }

    Effects open(TimePoint now);

    // Registers a connection. A connection without a stream reads without a plan.
    void on_connect(
        ConnectionId connection, std::optional<StreamId> stream, Party party = kOwnParty);
    Effects on_disconnect(ConnectionId connection, TimePoint now);

    // Replaces the plan of the connection's stream. The connection must have a stream.
    Effects on_plan(ConnectionId connection, StreamPlan plan, TimePoint now);

    // Replaces the end of the plan of the connection's stream. `tail.from` is at most
    // plan_size(connection, the plan's epoch).
    Effects extend_plan(ConnectionId connection, const PlanTail& tail, TimePoint now);

    // Length of the plan that the connection's stream has for this epoch; 0: it has no plan that
    // can be extended.
    [[nodiscard]] std::uint32_t plan_size(ConnectionId connection, std::uint64_t epoch) const {
        const auto stream = readers_.at(connection).stream;
        return stream ? streams_.plan_size(*stream, epoch) : 0;
    }

    // The connection has read the samples: ends its holds on them and, if the plan is for `epoch`,
    // marks them as read in the plan. `counts`, if given, is incremented by source.
    Effects on_consumed(
        ConnectionId connection,
        std::uint64_t epoch,
        const std::vector<SampleIndex>& samples,
        TimePoint now,
        ReadCounts* counts = nullptr);

    // A client requests samples; the holds of its earlier fetches end. A sample that they reported
    // as ready and that is requested again may be damaged: it is verified first.
    Effects on_fetch(
        ConnectionId connection,
        std::uint64_t request_id,
        const std::vector<SampleIndex>& samples,
        TimePoint now);

    Effects on_stored(SampleIndex sample, TimePoint now);

    // A fetch has failed. kNotFound, kConflict and similar errors answer all demands of the sample
    // for a while (core/refusals.h); is_retryable() and kForbidden are retried; after
    // kResourceExhausted, clients read the origin.
    Effects on_fetch_failed(SampleIndex sample, const Error& error, TimePoint now);

    // Call when a fetch in parts was stopped: nothing was stored.
    Effects on_stopped(SampleIndex sample, TimePoint now);

    // Whether the next `bytes` of a sample in parts may be requested now. If so, charges them to
    // the rate limits; StartFetch charged nothing. False: ask again after the next event.
    bool take_part(SampleIndex sample, Bytes bytes, TimePoint now);

    // Whether a client of the own party waits for the sample: its parts are requested before others.
    [[nodiscard]] bool is_urgent(SampleIndex sample) const;

    // Call when storing failed: nothing was stored. No sample of its class is admitted for a while,
    // unless the disk only lacked space for a sample in parts: smaller samples may fit.
    Effects on_store_failed(SampleIndex sample, const Error& error, TimePoint now);

    // A verification has ended. `intact` false: the store has already dropped the sample.
    Effects on_verified(SampleIndex sample, bool intact, TimePoint now);

    Effects on_grant(EngineGrant grant, TimePoint now);

    // Replaces EngineLimits::max_in_flight. Running fetches above it are not ended; the next event
    // starts fetches that now have a slot.
    void set_max_in_flight(std::uint32_t fetches) { limits_.max_in_flight = fetches; }

    [[nodiscard]] std::uint32_t max_in_flight() const { return limits_.max_in_flight; }

    // Sets the window's size to `wanted` record bytes; bytes beyond its standard size are borrowed
    // from the grant (core/cache_room.h). The next event's effects contain the drops.
    void set_window(Bytes wanted) {
        room_.set_window(wanted);
        shares_.set_borrowed(room_.borrowed());
    }

    // Disk space for one sample in parts; a larger one is read at the origin. Not set: any.
    void set_disk_room(Bytes room) { room_.set_disk_room(room); }

    // Record bytes that window samples may have now.
    [[nodiscard]] Bytes window() const { return room_.window(); }

    // Starts or ends a bypass: nothing new is fetched, and trainers read missing samples from the
    // origin themselves. Stored samples are still served.
    Effects on_aside(bool aside, TimePoint now);

    // Sets a function that tells whether a sample's owner can be asked now. If not, the sample is
    // read from the origin, within the origin's limits. Not set: owners can always be asked.
    void set_may_ask(std::function<bool(SampleIndex)> may_ask) { may_ask_ = std::move(may_ask); }

    // Sets a function that tells whether another node is asked for this own sample before the
    // origin; called once for each fetch of an own sample that the origin may deliver now. If true,
    // that node is asked; the fetch counts for the origin's rate limit and breaker until the node
    // has sent the sample. Not set: never. Not for samples of chunks: one request brings a chunk.
    void set_takes_over(std::function<bool(SampleIndex)> takes_over) {
        takes_over_ = std::move(takes_over);
    }

    // Replaces the owners of the samples; nullptr: every sample is own. Samples of other owners are
    // fetched from peers, except for the peers' party, so that no request is forwarded.
    Effects on_placement(std::shared_ptr<const Placement> placement, TimePoint now);

    // The owners of the samples; nullptr: every sample is own.
    [[nodiscard]] const Placement* placement() const { return table_.placement(); }

    // Call when a fetch from a peer takes long. The fetch gives up its slot: it is no load for the
    // origin, and with few slots the waits for several silent peers would follow one another.
    Effects on_slow(SampleIndex sample, TimePoint now);

    // Call when a fetch from a peer continues at the origin. The fetch now counts for the origin's
    // rate limit and breaker, and has a slot. Report its end like that of any fetch.
    void on_redirected(SampleIndex sample, TimePoint now);

    // The client of the connection reads past the cache for a while to measure what the cache
    // saves; meanwhile nothing is prefetched for its stream. Its demands are served.
    Effects on_bypass(ConnectionId connection, bool bypassing, TimePoint now);

    // Does the work that becomes due with time alone. Call at next_deadline(); extra calls are
    // harmless.
    Effects tick(TimePoint now);
    [[nodiscard]] std::optional<TimePoint> next_deadline(TimePoint now) const;

    // Whether a stream of the own party that `chosen` selects has a plan.
    [[nodiscard]] bool any_own_plan(const std::function<bool(StreamId)>& chosen) const {
        return streams_.any_own_plan(chosen);
    }

    [[nodiscard]] const SampleSizes& sizes() const { return table_.sizes(); }

    // The sample's size in a segment, header and padding included.
    [[nodiscard]] Bytes record_bytes(SampleIndex sample) const {
        return table_.record_bytes(sample);
    }

    [[nodiscard]] const ByteAccount& account() const { return table_.account(); }

    // The samples that are being fetched in parts.
    [[nodiscard]] const std::vector<SampleIndex>& parted() const { return table_.parted(); }

    [[nodiscard]] const EngineCounters& counters() const { return counters_; }

    [[nodiscard]] const EngineGrant& grant() const { return room_.grant(); }

    // Progress of the grant's order to fetch own samples; nullopt: the grant has no such order.
    [[nodiscard]] std::optional<FillState> fill_state(TimePoint now) const;

    // Whether the origin may be read and the disk written, and the last error of each.
    [[nodiscard]] const FetchAdmission& admission() const { return admission_; }

    [[nodiscard]] std::size_t pending_requests(ConnectionId connection) const {
        return book_.pending_requests(connection);
    }

    [[nodiscard]] const SampleRecord& sample(SampleIndex sample) const { return table_.at(sample); }

    // The samples on the node. Lives as long as the engine.
    [[nodiscard]] const Residency& residency() const { return table_; }

    // Sets the keeper: a window sample that no plan needs stays while the keeper wants it, and the
    // keeper chooses the victims in a full window. Not owned: must outlive the engine, or be
    // replaced; nullptr: only plans count.
    void set_window_keeper(const WindowKeeper* keeper) { room_.set_window_keeper(keeper); }

    // Called first for each sample that is stored or gone. Not owned.
    void set_listener(ResidencyListener* listener) { table_.set_listener(listener); }

    // Replaces the eviction policy and reports all residents to the new one.
    void set_eviction(std::unique_ptr<EvictionPolicy> eviction) {
        table_.set_eviction(std::move(eviction));
    }

    // `ranked`: only guests' importance ranks the residents, so none is evicted while the own party
    // is connected.
    void set_ranked_by_guests(bool ranked) { room_.set_ranked_by_guests(ranked); }

    [[nodiscard]] EvictionPolicy& eviction() { return table_.eviction(); }

private:
    struct Reader {
        std::optional<StreamId> stream;
        bool bypassing = false;
    };

    void count_read(SampleIndex sample, Party party, ReadCounts& counts) const;
    void demand(SampleIndex sample, DemandBook::Place place, Party party, bool suspicious);
    void settle_ready(SampleIndex sample);
    void settle_bypassed(SampleIndex sample);
    void settle_bypassed(SampleIndex sample, Party party);
    void settle_failed(SampleIndex sample, const std::string& message);
    void release(SampleIndex sample);
    void charge_holder(SampleIndex sample);
    void release_plan(const StreamPlan& plan);

    Effects pump(TimePoint now);

    // Result of one party's turn.
    enum class Turn : std::uint8_t {
        kGoOn,   // the party may have another turn
        kWaits,  // the party's demand must wait
        kDone,   // the party has nothing to fetch, or may not fetch now
    };

    void pump_fetches(TimePoint now);
    Turn demand_one(Party party, TimePoint now);
    CacheRoom::Verdict make_room_for_demand(SampleIndex sample, Party party, TimePoint now);
    bool end_one_hold(SampleIndex wanted, Party party);
    [[nodiscard]] bool is_urgent(Party party) const;
    [[nodiscard]] bool is_in_parts(SampleIndex sample, Party party) const;
    [[nodiscard]] bool has_place(Party party, bool demanded) const;
    [[nodiscard]] bool is_wanted(SampleIndex sample) const;
    void stop_unwanted();
    Turn prefetch_one(Party party, std::uint32_t& steps, TimePoint now);
    [[nodiscard]] bool may_fill(TimePoint now) const;
    void pump_fill(std::uint32_t& steps, TimePoint now);
    bool has_fill_room(SampleIndex sample, std::uint32_t& evictions, TimePoint now);
    void start_fill(SampleIndex first, TimePoint now);
    [[nodiscard]] bool is_refused(SampleIndex sample) const;
    void note_refused(SampleIndex sample);

    // Whether a peer sends it: as a whole, in the half of the memory that parts leave.
    [[nodiscard]] bool comes_from_peer(SampleIndex sample, Party party) const {
        const Bytes most = table_.parted().empty() ? limits_.memory : limits_.parts_memory();
        return party != kPeerParty && !table_.is_own(sample) &&
               table_.payload_bytes(sample) <= most && (!may_ask_ || may_ask_(sample));
    }

    [[nodiscard]] bool takes_over(SampleIndex sample) const;
    void note_origin_start(SampleIndex sample);
    void end_take_over(SampleIndex sample, TimePoint now);
    [[nodiscard]] bool may_demand(
        SampleIndex sample, Party party, bool with_chunk, TimePoint now) const;
    [[nodiscard]] bool must_wait(SampleIndex sample, CacheRoom::Verdict verdict, Party party) const;
    bool start(
        SampleIndex sample,
        CacheRoom::Verdict verdict,
        Party party,
        TimePoint now,
        bool slotless = false);
    [[nodiscard]] std::optional<StreamId> chunk_reader(SampleIndex sample, Party party) const;
    [[nodiscard]] bool fits_memory(SampleIndex sample, Party party, bool with_chunk) const;
    [[nodiscard]] bool fits_ahead(SampleIndex sample, Party party, bool with_chunk) const;
    [[nodiscard]] bool has_room_for_chunk(SampleIndex sample) const;
    void start_chunk(SampleIndex first, StreamId reader, TimePoint now);
    void pump_readahead();

    EngineLimits limits_;
    std::function<bool(SampleIndex)> may_ask_{};
    std::function<bool(SampleIndex)> takes_over_{};
    std::unordered_set<SampleIndex> taking_over_;  // asked of the node that takes_over_ found
    const SampleChunks* chunks_ = nullptr;
    SampleTable table_;
    StreamSet streams_;
    DemandBook book_;
    FetchAdmission admission_;
    PartyShares shares_;
    EngineCounters counters_;
    CacheRoom room_;
    std::map<ConnectionId, Reader> readers_;
    Refusals refusals_;
    FillScan fill_;
    std::uint32_t readahead_positions_ = 0;
    bool more_to_scan_ = false;
    Effects effects_;
};

}  // namespace stoker::sidecar
