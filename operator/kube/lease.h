#pragma once

#include <cstdint>
#include <string>
#include <variant>

#include "common/base/clock.h"
#include "common/base/prng.h"
#include "common/base/result.h"
#include "operator/kube/object.h"

// Leader election by a coordination.k8s.io/v1 Lease, as in client-go's leaderelection, without I/O.
namespace stoker::control {

// spec of a Lease. Times are MicroTime texts for people; they are never compared with a clock.
struct LeaseRecord {
    std::string holder;  // "" = free
    std::int64_t duration_seconds = 0;
    std::string acquire_time;
    std::string renew_time;
    std::int64_t transitions = 0;

    bool operator==(const LeaseRecord&) const = default;
};

LeaseRecord read_lease(const Json& lease);

// The Lease to POST (no `base`) or to PUT over `base`. All other fields of `base` are kept; its
// resourceVersion lets only one of two writers succeed.
Json write_lease(const ObjectKey& key, const LeaseRecord& record, const Json* base = nullptr);

struct LeaseTiming {
    Duration lease =
        std::chrono::seconds{15};  // other candidates wait this long after the last renewal
    Duration renew_deadline = std::chrono::seconds{10};  // the leader stops itself after this
    Duration retry = std::chrono::seconds{2};

    bool operator==(const LeaseTiming&) const = default;
};

// True if lease > renew_deadline > 1.2 · retry > 0, and `lease` is at least a second.
bool is_valid(const LeaseTiming& timing);

// The next step.
struct LeaseWait {
    TimePoint until;
};

struct LeaseRead {};

struct LeaseCreate {
    LeaseRecord record;
};

struct LeaseUpdate {  // PUT over the record last read or written, with its resource version
    LeaseRecord record;
};

struct LeaseLost {  // we led and must stop at once; final
    std::string reason;
};

using LeaseStep = std::variant<LeaseWait, LeaseRead, LeaseCreate, LeaseUpdate, LeaseLost>;

// One candidate. Call step(), execute its result, report the outcome, repeat.
//
// The clock rule: a candidate remembers at which *local* time it last saw the record change, and
// takes the lease over after the record was unchanged for its own duration. So clocks of two
// machines are never compared, and any skew is harmless. The leader counts its own time from before
// a successful write began, so it stops before another candidate can consider the lease expired:
// renew_deadline < lease.
//
// `now` must come from a clock that continues while the machine is suspended. Not thread-safe.
class LeaseMachine {
public:
    // `identity` must be unique to this process: host name and a random id.
    LeaseMachine(std::string identity, LeaseTiming timing, std::uint64_t seed);

    LeaseStep step(TimePoint now, WallTime wall_now);

    // Outcomes of a step. `began` is the time just before the request was sent.
    void on_read(const LeaseRecord& record, TimePoint now);
    void on_absent();
    void on_written(const LeaseRecord& record, TimePoint began, TimePoint now);
    // Any other outcome of the step: conflict, error, no response. The write may or may not have
    // happened.
    void on_failed(TimePoint now);

    [[nodiscard]] bool leads() const { return leads_; }

    // The fence before every external write: true while we lead and renewed recently enough.
    [[nodiscard]] bool may_write(TimePoint now) const {
        return leads_ && now - renewed_at_ < timing_.renew_deadline;
    }

    // When the last successful renewal began; only meaningful while leading.
    [[nodiscard]] TimePoint renewed_at() const { return renewed_at_; }

    // Last known holder of the lease; "" if none or unknown.
    [[nodiscard]] const std::string& holder() const { return record_.holder; }

    // The record that a leader writes after all its work has stopped.
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
    TimePoint changed_at_{};  // local time of the last observed change of record_
};

}  // namespace stoker::control
