#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "common/base/clock.h"
#include "common/base/result.h"
#include "operator/api/condition.h"
#include "operator/controllers/own_writes.h"
#include "operator/kube/client.h"
#include "operator/runtime/store.h"

namespace stoker::control {

enum class StatusOutcome : std::uint8_t {
    kUnchanged,
    kWritten,
    kPostponed,  // only a counter grew, and the last write was recent
    kGone,       // the object was deleted, replaced by another one, or is newer than the cache's
};

struct StatusWrite {
    StatusOutcome outcome = StatusOutcome::kUnchanged;
    std::optional<Duration> again_after;  // of kPostponed
};

// Writes statuses of one kind through /status, only if they differ, and remembers the written
// version: a reconciler that works from a cache must not act again before it sees its own last
// write. Growing counters are written at most every kProgressEvery; a changed condition at once.
// Thread-safe.
class StatusWriter {
public:
    static constexpr Duration kProgressEvery = std::chrono::seconds{5};

    StatusWriter(ApiClient& client, ResourceKind kind, const Clock& clock)
        : client_(client),
          kind_(std::move(kind)),
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
        if (!urgent && before.status.observed_generation == after.status.observed_generation &&
            same_judgement(before.status.conditions, after.status.conditions)) {
            if (const auto wait = wait_for_progress(before.meta.key())) {
                return StatusWrite{StatusOutcome::kPostponed, wait};
            }
        }
        return send(before.meta.key(), status_patch(after));
    }

    // Call it when the object is gone.
    void forget(const ObjectKey& key) { writes_.forget(key); }

private:
    // True if type, status and reason are equal; messages may differ, because they contain
    // counters.
    static bool same_judgement(
        const std::vector<Condition>& before, const std::vector<Condition>& after);
    std::optional<Duration> wait_for_progress(const ObjectKey& key);
    Result<StatusWrite> send(const ObjectKey& key, const Json& body);

    ApiClient& client_;
    ResourceKind kind_;
    OwnWrites writes_;
};

}  // namespace stoker::control
