#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "common/base/clock.h"
#include "common/base/guarded.h"
#include "common/base/result.h"
#include "common/base/token_bucket.h"
#include "operator/api/condition.h"
#include "operator/controllers/own_writes.h"
#include "operator/kube/client.h"
#include "operator/runtime/store.h"

namespace stoker::control {

enum class StatusOutcome : std::uint8_t {
    kUnchanged,
    kWritten,
    kPostponed,  // the last write was recent and only a counter grew, or the budget is used up
    kGone,       // the object was deleted, replaced by another one, or is newer than the cache's
};

struct StatusWrite {
    StatusOutcome outcome = StatusOutcome::kUnchanged;
    std::optional<Duration> again_after;  // with kPostponed: when to try again
};

// Writes statuses of one kind through /status, only if they differ, and remembers the written
// version: a reconciler that works from a cache must not act again before it sees its own last
// write. Growing counters are written at most every kProgressEvery; a changed condition at once.
//
// All writes together have a budget, so that ten thousand statuses that change at once leave the API
// server and our other requests room: a write beyond the budget is sent later and blocks nobody.
// Condition changes have one budget, counters another; urgent writes need none. Thread-safe.
class StatusWriter {
public:
    static constexpr Duration kProgressEvery = std::chrono::seconds{5};

    // At most this many status writes per second, for all objects of one kind together.
    static constexpr double kConditionRate = 30;
    static constexpr double kConditionBurst = 100;
    static constexpr double kProgressRate = 10;
    static constexpr double kProgressBurst = 50;

    StatusWriter(ApiClient& client, ResourceKind kind, const Clock& clock)
        : client_(client),
          kind_(std::move(kind)),
          clock_(clock),
          writes_(clock) {}

    // True if the cache shows the last write to `key`.
    template <class T>
    bool has_seen_own_write(const Store<T>& store, const ObjectKey& key) {
        return writes_.are_seen(store, key);
    }

    // `before` is the current object, `after` the same with its new status. `urgent`: do not
    // postpone, for example because actions depend on it.
    template <class T>
    Result<StatusWrite> write(const T& before, const T& after, bool urgent) {
        if (before.status == after.status) {
            return StatusWrite{};
        }
        const bool progress =
            before.status.observed_generation == after.status.observed_generation &&
            same_judgement(before.status.conditions, after.status.conditions);
        if (!urgent) {
            if (const auto wait = wait_for_turn(before.meta.key(), progress)) {
                return StatusWrite{StatusOutcome::kPostponed, wait};
            }
        }
        return send(before.meta.key(), status_patch(after));
    }

    // Call it when the object is gone.
    void forget(const ObjectKey& key);

private:
    // True if type, status and reason are equal; messages may differ, because they contain
    // counters.
    static bool same_judgement(
        const std::vector<Condition>& before, const std::vector<Condition>& after);
    // Time until the write may be sent; nullopt: now.
    std::optional<Duration> wait_for_turn(const ObjectKey& key, bool progress);
    Result<StatusWrite> send(const ObjectKey& key, const Json& body);

    ApiClient& client_;
    ResourceKind kind_;

    // The postponed writes, with the time at which each may be sent.
    struct Budget {
        TokenBucket bucket;
        std::map<ObjectKey, TimePoint> turns{};
    };

    static std::optional<Duration> take_turn(Budget& budget, const ObjectKey& key, TimePoint now);

    const Clock& clock_;
    OwnWrites writes_;
    Guarded<Budget> conditions_{Budget{{kConditionRate, kConditionBurst}}};
    Guarded<Budget> progress_{Budget{{kProgressRate, kProgressBurst}}};
};

}  // namespace stoker::control
