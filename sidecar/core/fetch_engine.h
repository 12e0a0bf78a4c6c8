#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
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
#include "sidecar/core/party_shares.h"
#include "sidecar/core/sample_table.h"
#include "sidecar/core/stream_plan.h"
#include "sidecar/core/stream_set.h"

namespace stoker::sidecar {

struct StartFetch {
    SampleIndex sample = 0;
    domain::SegmentClass segment_class = domain::SegmentClass::kWindow;

    bool operator==(const StartFetch&) const = default;
};

// What the edge has to do, in this order: drops, fetches, and the rest. Ids only, never payload.
struct Effects {
    std::vector<SampleIndex> drops;
    std::vector<StartFetch> fetches;    // each is answered by one of on_stored and the two failures
    std::vector<SampleIndex> verifies;  // each is answered by on_verified
    std::vector<SampleIndex> will_need;
    std::vector<SampleIndex> wont_need;
    std::vector<FetchReply> replies;
};

// Where the samples that were read came from; one that has left the node counts as neither.
// A fetch is its party's alone: another party's first read of the sample is a hit, and a guest that
// says that it has read what was fetched for others changes nobody's counts.
struct ReadCounts {
    std::uint64_t hit_samples = 0;      // nothing crossed the link to the origin for this read
    Bytes hit_bytes{};                  // payload
    std::uint64_t fetched_samples = 0;  // the first read since they were fetched for this party
    Bytes fetched_bytes{};

    bool operator==(const ReadCounts&) const = default;
};

// Per-dataset fetch, admission and eviction state machine (sans-io): which sample is fetched when,
// where it is kept and when it goes. Every method takes an event and `now`, and returns what to do.
//
// Promises. Every demand fetch is answered, whatever the origin and the disk do. At most one fetch
// of a sample is in flight. Resident record bytes never exceed the grant and window record bytes
// never exceed their budget, both counted with what is in flight; residents that lose their grant
// while a client holds them are counted apart until it lets go. A window sample is dropped as soon
// as nobody needs or holds it, and before that only to make room for a demand (the one that is
// needed last goes first), or when it is needed later than anything prefetched.
//
// A sample becomes resident while the grant has room, or when the eviction policy names residents
// that are worth less; else it passes through the window. Residents go to make room only while no
// client holds or waits for them and no plan needs them within what was prefetched already, so that
// an eviction never undoes a prefetch. Without a policy nothing is evicted (NeverEvict).
//
// Where a sample goes and what leaves for it: core/cache_room.h. When the origin may be asked:
// core/fetch_admission.h. What each party may take while others are here: core/party_shares.h.
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

    // What the store found when it opened; before any other event. open() ends this.
    void adopt(SampleIndex sample, domain::SegmentClass segment_class) {
        room_.adopt(sample, segment_class);
    }

    Effects open(TimePoint now);

    // Without a stream the connection reads without a plan.
    void on_connect(
        ConnectionId connection, std::optional<StreamId> stream, Party party = kOwnParty);
    Effects on_disconnect(ConnectionId connection, TimePoint now);

    // Replaces the plan of the connection's stream. The connection must have one.
    Effects on_plan(ConnectionId connection, StreamPlan plan, TimePoint now);

    // Samples of another epoch than the plan's are only released. `counts`, where it is given,
    // grows by where they came from.
    Effects on_consumed(
        ConnectionId connection,
        std::uint64_t epoch,
        const std::vector<SampleIndex>& samples,
        TimePoint now,
        ReadCounts* counts = nullptr);

    // Releases what earlier answered fetches of the connection hold. A sample that one of those
    // made ready and that is asked for again is suspected to be damaged, and verified first.
    Effects on_fetch(
        ConnectionId connection,
        std::uint64_t request_id,
        const std::vector<SampleIndex>& samples,
        TimePoint now);

    Effects on_stored(SampleIndex sample, TimePoint now);

    // kNotFound, kConflict and their like are final; what is_retryable() or kForbidden is tried
    // again; kResourceExhausted sends clients to the origin themselves.
    Effects on_fetch_failed(SampleIndex sample, const Error& error, TimePoint now);

    // Nothing was stored. The sample's class is not admitted for a while.
    Effects on_store_failed(SampleIndex sample, const Error& error, TimePoint now);

    // Not intact: the store has dropped it already.
    Effects on_verified(SampleIndex sample, bool intact, TimePoint now);

    Effects on_grant(EngineGrant grant, TimePoint now);

    // Aside: nothing new is fetched, and trainers are told to read what is not here themselves.
    // What is here is served.
    Effects on_aside(bool aside, TimePoint now);

    // The connection reads past the cache for a while, so that what that costs can be measured:
    // nothing is fetched ahead for its stream meanwhile. Its demands are served.
    Effects on_bypass(ConnectionId connection, bool bypassing, TimePoint now);

    // Does what time alone allows. Call it at next_deadline(); calling it more often is harmless.
    Effects tick(TimePoint now);
    [[nodiscard]] std::optional<TimePoint> next_deadline(TimePoint now) const;

    [[nodiscard]] const SampleSizes& sizes() const { return table_.sizes(); }

    [[nodiscard]] const ByteAccount& account() const { return table_.account(); }

    [[nodiscard]] const EngineCounters& counters() const { return counters_; }

    [[nodiscard]] const EngineGrant& grant() const { return room_.grant(); }

    // Whether the origin may be asked and the disk be written, and their last errors.
    [[nodiscard]] const FetchAdmission& admission() const { return admission_; }

    [[nodiscard]] std::size_t pending_requests(ConnectionId connection) const {
        return book_.pending_requests(connection);
    }

    [[nodiscard]] const SampleRecord& sample(SampleIndex sample) const { return table_.at(sample); }

    // The samples on the node. Lives as long as the engine.
    [[nodiscard]] const Residency& residency() const { return table_; }

    // From now on a window sample that no plan needs stays while the keeper keeps it, and a full
    // window is cleared as the keeper says. Not owned: must outlive the engine, or be replaced;
    // nullptr: only plans count.
    void set_window_keeper(const WindowKeeper* keeper) { room_.set_window_keeper(keeper); }

    // Is told of each sample that is stored or gone, before anything else happens. Not owned.
    void set_listener(ResidencyListener* listener) { table_.set_listener(listener); }

    // From now on `eviction` decides; it is told what is resident.
    void set_eviction(std::unique_ptr<EvictionPolicy> eviction) {
        table_.set_eviction(std::move(eviction));
    }

    // True: only guests rank the residents, so none is evicted while the own party is connected.
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
    void settle_failed(SampleIndex sample, const std::string& message);
    void release(SampleIndex sample);
    void release_plan(const StreamPlan& plan);

    Effects pump(TimePoint now);

    // What became of one party's turn.
    enum class Turn : std::uint8_t {
        kGoOn,   // it may have another one
        kWaits,  // its demand waits
        kDone,   // it has nothing to fetch, or may not now
    };

    void pump_fetches(TimePoint now);
    Turn demand_one(Party party, TimePoint now);
    Turn prefetch_one(Party party, std::uint32_t& steps, TimePoint now);
    bool start(SampleIndex sample, CacheRoom::Verdict verdict, Party party, TimePoint now);
    void pump_readahead();

    const EngineLimits limits_;
    SampleTable table_;
    StreamSet streams_;
    DemandBook book_;
    FetchAdmission admission_;
    PartyShares shares_;
    EngineCounters counters_;
    CacheRoom room_;
    std::map<ConnectionId, Reader> readers_;
    std::map<SampleIndex, std::string> refusals_;  // the origin's words, bounded
    std::uint32_t readahead_positions_ = 0;
    bool more_to_scan_ = false;
    Effects effects_;
};

}  // namespace stoker::sidecar
