#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/base/bytes.h"
#include "common/base/clock.h"
#include "common/base/error.h"
#include "common/domain/residency_word.h"
#include "sidecar/core/circuit_breaker.h"
#include "sidecar/core/demand_book.h"
#include "sidecar/core/eviction/eviction_policy.h"
#include "sidecar/core/eviction/window_keeper.h"
#include "sidecar/core/rate_limiter.h"
#include "sidecar/core/sample_table.h"
#include "sidecar/core/stream_plan.h"
#include "sidecar/core/stream_set.h"

namespace stoker::sidecar {

struct EngineLimits {
    Bytes window = mib(256);           // record bytes of class window: unread, held or in flight
    Bytes memory = mib(64);            // payload bytes in flight; a larger sample is never cached
    std::uint32_t max_in_flight = 32;  // fetches of the own party; of guests, what that leaves
    Bytes readahead = mib(32);         // residents announced to the page cache before each reader
    Bytes page_cache = Bytes::unlimited();  // above: residents leave the page cache behind readers
    Duration adopt_grace = std::chrono::seconds{10};  // for window samples found when opening
    CircuitBreaker::Limits store_gate{};
    CircuitBreaker::Limits origin_gate{std::chrono::milliseconds{250}, std::chrono::seconds{10}};
};

// The fetches that guests may have in flight at least, beside max_in_flight of the own party: of a
// link that both fill they get so little that an epoch of ours takes a tenth longer at most.
constexpr std::uint32_t guest_slots(std::uint32_t max_in_flight) {
    return std::max(max_in_flight / 10, 1U);
}

// Bytes that may be resident here, and until when new ones may be admitted. Without an end: for
// ever.
struct EngineGrant {
    Bytes resident_bytes{};
    std::optional<TimePoint> valid_until;
    std::uint64_t origin_bytes_per_second = 0;  // core/rate_limiter.h; 0: no limit; has no end
};

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

// Where samples that were read had come from; what is not on the node any more counts as neither.
// A fetch is its party's alone: another party's first read of the sample is a hit, and a guest that
// says that it has read what was fetched for others changes nobody's counts.
struct ReadCounts {
    std::uint64_t hit_samples = 0;      // nothing crossed the link to the origin for this read
    Bytes hit_bytes{};                  // payload
    std::uint64_t fetched_samples = 0;  // the first read since they were fetched for this party
    Bytes fetched_bytes{};

    bool operator==(const ReadCounts&) const = default;
};

// Totals since the start.
struct EngineCounters {
    std::uint64_t demanded_samples = 0;
    std::uint64_t demand_ready_samples = 0;     // were there already when they were asked for
    std::uint64_t demand_bypassed_samples = 0;  // answered by kReadAtOrigin
    std::uint64_t demand_failed_samples = 0;    // answered by kOriginError
    std::uint64_t fetches = 0;
    std::uint64_t stored_samples = 0;
    std::uint64_t stored_bytes = 0;  // payload
    std::uint64_t origin_failures = 0;
    std::uint64_t store_failures = 0;
    std::uint64_t corrupt_samples = 0;
    std::uint64_t dropped_window_samples = 0;    // after everybody had read them
    std::uint64_t evicted_window_samples = 0;    // before that, to make room
    std::uint64_t dropped_resident_samples = 0;  // because the grant shrank
    std::uint64_t evicted_resident_samples = 0;  // because the policy preferred others

    bool operator==(const EngineCounters&) const = default;
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
// Parties share what there is. Each has a queue of demands of its own; they take turns, ten of the
// own party to one of guests, with a demand or else with what it needs next. Guests have the
// slots that the own party leaves, and guest_slots() beside them; they take none of its. While
// guests are connected the own party has half the window, and they the other half in equal shares
// (without an own connection three quarters); what a guest prefetched, holds or plans keeps nothing
// that is charged to another party. core/sample_table.h says what is charged to whom.
//
// Not thread-safe: one owner. Ids in events must be below the count of `sizes`.
class FetchEngine {
public:
    FetchEngine(
        const SampleSizes& sizes,
        EngineLimits limits,
        EngineGrant grant,
        std::unique_ptr<EvictionPolicy> eviction = nullptr);

    // What the store found when it opened; before any other event. open() ends this.
    void adopt(SampleIndex sample, domain::SegmentClass segment_class);
    Effects open(TimePoint now);

    // Without a stream the connection reads without a plan.
    void on_connect(
        ConnectionId connection, std::optional<StreamId> stream, Party party = kOwnParty);
    Effects on_disconnect(ConnectionId connection, TimePoint now);

    // Replaces the plan of the connection's stream, which it must have.
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

    [[nodiscard]] const EngineGrant& grant() const { return grant_; }

    // False while the disk is full or failing; last_store_error() says why.
    [[nodiscard]] bool is_admitting() const;

    [[nodiscard]] const std::string& last_store_error() const { return last_store_error_; }

    // Empty once a fetch has worked again.
    [[nodiscard]] const std::string& last_origin_error() const { return last_origin_error_; }

    [[nodiscard]] std::size_t pending_requests(ConnectionId connection) const {
        return book_.pending_requests(connection);
    }

    [[nodiscard]] const SampleRecord& sample(SampleIndex sample) const { return table_.at(sample); }

    // What is on the node: as long as the engine.
    [[nodiscard]] const Residency& residency() const { return table_; }

    // From now on a window sample that no plan needs stays while the keeper keeps it, and a full
    // window is cleared as the keeper says. Not owned: must outlive the engine, or be replaced;
    // nullptr: only plans count.
    void set_window_keeper(const WindowKeeper* keeper) { keeper_ = keeper; }

    // Hears of what is stored and what is gone, before anything else happens. Not owned.
    void set_listener(ResidencyListener* listener) { table_.set_listener(listener); }

    // From now on `eviction` decides; it is told what is resident.
    void set_eviction(std::unique_ptr<EvictionPolicy> eviction);

    // Did only guests say what matters most? Then nothing is evicted while the own party is here.
    void set_ranked_by_guests(bool ranked) { ranked_by_guests_ = ranked; }

    // For those who feed it with more than reads (importance). Never nullptr.
    [[nodiscard]] EvictionPolicy& eviction() { return *eviction_; }

private:
    enum class Verdict : std::uint8_t { kResident, kWindow, kFull, kShut, kNever };

    // Where may the sample go now? Evicts nothing.
    [[nodiscard]] Verdict judge(SampleIndex sample, TimePoint now, Party party) const;
    Verdict judge_with_room(SampleIndex sample, TimePoint now, bool demanded, Party party);
    bool make_resident_room(SampleIndex sample, TimePoint now, Party party);
    [[nodiscard]] bool is_granted(TimePoint now) const;
    [[nodiscard]] bool may_leave(SampleIndex sample, Party party) const;

    // For whom room is made.
    struct Need {
        Party party;
        bool demanded = false;
        bool beyond_share = false;  // of the party: only its own samples make room
    };

    bool evict_one(const Need& need);
    bool evict_spare(const Need& need);
    bool evict_as_kept(const Need& need);
    [[nodiscard]] Bytes window_share(Party party) const;
    [[nodiscard]] bool is_beyond_share(Bytes bytes, Party party) const;
    [[nodiscard]] bool gives_way(SampleIndex sample, const Need& need) const;
    [[nodiscard]] bool is_near(SampleIndex sample, Party other = kOwnParty) const;
    [[nodiscard]] bool is_superfluous(SampleIndex sample) const;
    [[nodiscard]] bool may_evict(SampleIndex sample) const;
    [[nodiscard]] bool fits_memory(SampleIndex sample) const;
    [[nodiscard]] bool wants(SampleIndex sample, TimePoint now) const;

    CircuitBreaker& gate_of(domain::SegmentClass segment_class);

    void count_read(SampleIndex sample, Party party, ReadCounts& counts) const;
    void demand(SampleIndex sample, DemandBook::Place place, Party party, bool suspicious);
    [[nodiscard]] bool may_verify(Party party, TimePoint now);
    void settle_ready(SampleIndex sample);
    void settle_bypassed(SampleIndex sample);
    void settle_failed(SampleIndex sample, const std::string& message);
    void release(SampleIndex sample);
    void release_plan(const StreamPlan& plan);
    void consider(SampleIndex sample);
    void drop(SampleIndex sample);
    void forget_resident(SampleIndex sample);
    void enforce_grant();
    void sweep_adopted(TimePoint now);

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
    void pump_readahead();
    void start(SampleIndex sample, Verdict verdict, Party party, TimePoint now);
    [[nodiscard]] bool has_slot(Party party, std::uint32_t slots) const;
    [[nodiscard]] bool may_demand(Party party, TimePoint now) const;
    [[nodiscard]] std::uint64_t stride(Party party) const;

    [[nodiscard]] bool is_own_here() const { return book_.has(kOwnParty); }

    EngineLimits limits_;
    EngineGrant grant_;
    SampleTable table_;
    std::unique_ptr<EvictionPolicy> eviction_;  // knows what counts against the grant
    StreamSet streams_;
    DemandBook book_;
    const WindowKeeper* keeper_ = nullptr;
    std::map<ConnectionId, std::optional<StreamId>> stream_of_;
    std::set<ConnectionId> bypassing_;
    std::deque<SampleIndex> spares_;  // window samples needed late or by nobody; may be stale

    struct Checks {
        TimePoint since{};
        std::uint32_t count = 0;
    };

    std::array<std::uint64_t, kPartiesMax> turns_{};  // when each is next; the lowest goes first
    std::uint64_t turn_ = 0;                          // of the party that went last
    std::map<Party, Checks> checks_;                  // verifications that guests asked for
    std::map<SampleIndex, std::string> refusals_;     // the origin's words, bounded
    CircuitBreaker resident_gate_;
    CircuitBreaker window_gate_;
    CircuitBreaker origin_gate_;  // for prefetches
    RateLimiter origin_rate_;     // demands may be a second's worth ahead of it
    std::optional<TimePoint> sweep_at_;
    std::uint32_t readahead_positions_ = 0;
    bool more_to_scan_ = false;
    bool aside_ = false;
    bool ranked_by_guests_ = false;
    std::string last_store_error_;
    std::string last_origin_error_;
    EngineCounters counters_;
    Effects effects_;
};

}  // namespace stoker::sidecar
