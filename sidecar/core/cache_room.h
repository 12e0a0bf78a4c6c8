#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "common/base/bytes.h"
#include "common/base/clock.h"
#include "common/domain/residency_word.h"
#include "sidecar/core/engine_limits.h"
#include "sidecar/core/eviction/window_keeper.h"
#include "sidecar/core/fetch_admission.h"
#include "sidecar/core/party_shares.h"
#include "sidecar/core/sample_table.h"
#include "sidecar/core/stream_set.h"

namespace stoker::sidecar {

// Decides where a sample may be stored on the node and what is evicted for it. Only this class
// drops samples. Not thread-safe; the objects passed to the constructor must outlive it.
//
// The window borrows from the grant: with `b` bytes borrowed, residents stay within grant - b and
// new window samples within limits.window + b. Record bytes of both classes, including fetches in
// flight, never exceed grant + limits.window; residents that lost their grant while a client holds
// them take up to `b` bytes of the window.
//
// With a placement (core/placement.h), a sample that another node owns becomes resident only in
// room that own samples do not need. It is evicted for own samples, never they for it.
class CacheRoom {
public:
    enum class Verdict : std::uint8_t {
        kResident,
        kWindow,
        kFull,   // the window has no room at the moment
        kShut,   // nothing may be stored at the moment
        kNever,  // larger than the window, than a segment can be, or than the disk has space
    };

    // Increments `counters` for each drop and eviction.
    CacheRoom(
        const EngineLimits& limits,
        EngineGrant grant,
        const FetchAdmission& admission,
        const PartyShares& shares,
        SampleTable& table,
        StreamSet& streams,
        EngineCounters& counters)
        : limits_(limits),
          grant_(grant),
          admission_(admission),
          shares_(shares),
          table_(table),
          streams_(streams),
          counters_(counters) {}

    // Registers a sample that the store found when it opened.
    void adopt(SampleIndex sample, domain::SegmentClass segment_class);

    // Ends adoption: no adopt() after this. Drops samples that exceed the limits: after a power
    // cut, segments unlinked before it may exist again.
    void open(TimePoint now);

    // Whether to prefetch the sample. A sample that failed too often, or that the origin refused, is
    // fetched on demand only, where the reason is reported.
    [[nodiscard]] bool wants(SampleIndex sample, TimePoint now) const;

    // Whether the sample may be stored now, provided that enough other samples can leave.
    [[nodiscard]] bool may_store(SampleIndex sample, TimePoint now) const;

    // Where the sample may be stored now. Evicts nothing.
    [[nodiscard]] Verdict judge(SampleIndex sample, TimePoint now, Party party) const;

    // As judge(), after evicting samples that are worth less. `demanded`: a client waits for the
    // sample.
    Verdict make_room(SampleIndex sample, TimePoint now, bool demanded, Party party);

    // Whether new residents are admitted now, as far as the grant has room for them.
    [[nodiscard]] bool may_admit(TimePoint now) const {
        return !aside_ && (!grant_.valid_until || now < *grant_.valid_until) &&
               admission_.resident.allows(now);
    }

    // Makes room for an own sample as a resident; only samples of other owners leave for it. False:
    // there is no room.
    bool make_own_room(SampleIndex sample, TimePoint now, Party party);

    // A smaller grant evicts the residents that the policy names. Residents that a client holds, or
    // that are being fetched, no longer count against the grant and are dropped once released.
    void set_grant(const EngineGrant& grant) {
        grant_ = grant;
        enforce_grant();
    }

    [[nodiscard]] const EngineGrant& grant() const { return grant_; }

    // Sets the window's size. Bytes beyond limits.window are borrowed from the grant, at most all
    // of it; the residents that the policy names are evicted for them. A smaller size returns
    // borrowed bytes.
    void set_window(Bytes wanted) {
        wanted_window_ = wanted;
        enforce_grant();
    }

    // Record bytes that window samples may have: at least limits.window.
    [[nodiscard]] Bytes window() const { return limits_.window + borrowed(); }

    // Bytes that the window borrows from the grant. Zero before the operator's first grant, because
    // that grant may be smaller than the configured one.
    [[nodiscard]] Bytes borrowed() const {
        return grant_.is_ordered()
                   ? std::min(wanted_window_ - limits_.window, grant_.resident_bytes)
                   : Bytes::zero();
    }

    // Replaces the owners of the samples; nullptr: every sample is own. Drops nothing: residents of
    // other owners leave when own samples need their room.
    void set_placement(std::shared_ptr<const Placement> placement);

    // Disk space that one sample in parts may take now. Without enough space nothing is evicted for
    // the sample, because evicted samples free disk space only later.
    void set_disk_room(Bytes room) { disk_room_ = room; }

    // Starts or ends a bypass of the cache, during which nothing new is stored.
    void set_aside(bool aside) { aside_ = aside; }

    // `ranked`: only guests' importance ranks the residents, so none is evicted while jobs of the
    // Dataset's own namespace (kOwnParty) are connected.
    void set_ranked_by_guests(bool ranked) { ranked_by_guests_ = ranked; }

    // `keeper` is not owned; nullptr: only plans keep window samples.
    void set_window_keeper(const WindowKeeper* keeper) { keeper_ = keeper; }

    // Call after the sample lost a need or a hold: drops it if that was the last one, or marks it
    // evictable.
    void reconsider(SampleIndex sample);

    // Call when a fetch of the sample as a resident has begun.
    void note_resident(SampleIndex sample);

    // Forgets a sample that was lost or whose fetch failed. Streams that need it request it again.
    void lose(SampleIndex sample);

    // Drops window samples that an earlier leading sidecar stored and nobody has requested since.
    void sweep(TimePoint now);

    [[nodiscard]] std::optional<TimePoint> sweeps_at() const { return sweep_at_; }

    // Samples dropped since the last call, in order.
    std::vector<SampleIndex> take_drops() { return std::exchange(drops_, {}); }

private:
    // The reason for an eviction: which party needs room, and how urgently.
    struct Need {
        Party party;
        bool demanded = false;
        bool beyond_share = false;  // only samples charged to the party make room
    };

    [[nodiscard]] Bytes resident_limit() const;
    [[nodiscard]] Bytes room_needed(SampleIndex sample) const;
    void evict_foreign(Bytes needed, Party party);
    void doom_foreign();
    void find_foreign();
    [[nodiscard]] bool is_storable(SampleIndex sample) const;
    [[nodiscard]] bool fits_window(Bytes bytes) const;
    [[nodiscard]] bool may_keep(SampleIndex sample, TimePoint now) const;
    bool make_resident_room(SampleIndex sample, TimePoint now, Party party);
    [[nodiscard]] bool may_leave(SampleIndex sample, Party party) const;
    bool evict_one(const Need& need);
    [[nodiscard]] std::optional<SampleIndex> kept_victim(const Need& need) const;
    std::optional<SampleIndex> spare_victim(const Need& need);
    std::optional<SampleIndex> farthest_victim(const Need& need);
    [[nodiscard]] bool gives_way(SampleIndex sample, const Need& need) const;
    [[nodiscard]] bool is_near(SampleIndex sample, Party other = kOwnParty) const;
    [[nodiscard]] bool may_evict(SampleIndex sample) const;
    void add_spare(SampleIndex sample);
    void pass_to_owner(SampleIndex sample);
    bool drop_if_superfluous(SampleIndex sample);
    void drop(SampleIndex sample);
    void enforce_grant();

    const EngineLimits& limits_;
    EngineGrant grant_;
    const FetchAdmission& admission_;
    const PartyShares& shares_;
    SampleTable& table_;
    StreamSet& streams_;
    EngineCounters& counters_;
    const WindowKeeper* keeper_ = nullptr;
    Bytes wanted_window_{};
    Bytes disk_room_ = Bytes::unlimited();
    std::deque<SampleIndex> spares_;   // needed late or by no stream; may be outdated
    std::deque<SampleIndex> foreign_;  // residents that other nodes own; may be outdated
    std::optional<TimePoint> sweep_at_;
    std::vector<SampleIndex> drops_;
    bool aside_ = false;
    bool ranked_by_guests_ = false;
};

}  // namespace stoker::sidecar
