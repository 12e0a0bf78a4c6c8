#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "common/base/clock.h"
#include "common/base/prng.h"
#include "common/base/result.h"
#include "operator/kube/object.h"

// Leadership by a coordination.k8s.io/v1 Lease, as client-go's leaderelection does it, without I/O.
namespace stoker::control {

// spec of a Lease. Times are MicroTime texts: they are for people and are never compared with any
// clock.
struct LeaseRecord {
    std::string holder;  // "" = free
    std::int64_t duration_seconds = 0;
    std::string acquire_time;
    std::string renew_time;
    std::int64_t transitions = 0;

    bool operator==(const LeaseRecord&) const = default;
};

LeaseRecord read_lease(const Json& lease);

// The Lease to POST (no `base`) or to PUT over `base`, of which everything else is kept, its
// resourceVersion above all: that is what lets only one of two writers win.
Json write_lease(const ObjectKey& key, const LeaseRecord& record, const Json* base = nullptr);

struct LeaseTiming {
    Duration lease = std::chrono::seconds{15};  // others wait this long after the last sign of life
    Duration renew_deadline = std::chrono::seconds{10};  // the leader stops itself after this
    Duration retry = std::chrono::seconds{2};

    bool operator==(const LeaseTiming&) const = default;
};

// lease > renew_deadline > 1.2 · retry > 0, and `lease` is at least a second.
bool is_valid(const LeaseTiming& timing);

// What to do next.
struct LeaseWait {
    TimePoint until;
};

struct LeaseRead {};

struct LeaseCreate {
    LeaseRecord record;
};

struct LeaseUpdate {  // PUT over what was last read or written, with its resource version
    LeaseRecord record;
};

struct LeaseLost {  // we led and must stop at once; final
    std::string reason;
};

using LeaseStep = std::variant<LeaseWait, LeaseRead, LeaseCreate, LeaseUpdate, LeaseLost>;

// One candidate. Ask step(), do it, tell the outcome, repeat.
//
// The clock rule: a candidate remembers at which *local* time it last saw the record change, and
// takes the lease over when it has not changed for the duration that stands in it. So no clock is
// ever compared with another machine's, and any skew is harmless. The leader counts its own time
// from before a successful write began, so it stops before anyone else can think that the lease has
// run out: renew_deadline < lease.
//
// `now` must come from a clock that goes on while the machine is suspended. Not thread-safe.
class LeaseMachine {
public:
    // `identity` must be unique to this process: host name and a random id.
    LeaseMachine(std::string identity, LeaseTiming timing, std::uint64_t seed);

    LeaseStep step(TimePoint now, WallTime wall_now);

    // The outcomes. `began` is when the request was about to be sent.
    void on_read(const LeaseRecord& record, TimePoint now);
    void on_absent();
    void on_written(const LeaseRecord& record, TimePoint began, TimePoint now);
    // Whatever else came of it: a conflict, an error, no answer. The write may or may not have
    // happened.
    void on_failed(TimePoint now);

    [[nodiscard]] bool leads() const { return leads_; }

    // The fence to ask before every write to the world: true while we lead and renewed recently
    // enough.
    [[nodiscard]] bool may_write(TimePoint now) const {
        return leads_ && now - renewed_at_ < timing_.renew_deadline;
    }

    // When the last successful renewal began; only meaningful while leading.
    [[nodiscard]] TimePoint renewed_at() const { return renewed_at_; }

    // Holder of the lease as far as we know; "" when nobody or unknown.
    [[nodiscard]] const std::string& holder() const { return record_.holder; }

    // What a leader writes that has stopped all its work.
    static LeaseRecord released(const LeaseRecord& record, WallTime wall_now);

private:
    enum class Knowledge : std::uint8_t { kStale, kAbsent, kRead, kWritten };

    [[nodiscard]] LeaseRecord claim(WallTime wall_now) const;
    [[nodiscard]] bool has_expired(TimePoint now) const;
    [[nodiscard]] Duration pause();
    void remember(const LeaseRecord& record, TimePoint now);

    std::string identity_;
    LeaseTiming timing_;
    Prng prng_;
    bool leads_ = false;
    TimePoint renewed_at_{};
    TimePoint next_attempt_{};
    Knowledge knowledge_ = Knowledge::kStale;
    LeaseRecord record_;
    bool seen_ = false;
    TimePoint changed_at_{};  // local time at which record_ was last seen to change
};

}  // namespace stoker::control
