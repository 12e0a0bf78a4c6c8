#include "operator/controllers/status_writer.h"

#include <algorithm>

namespace stoker::control {

bool StatusWriter::same_judgement(
    const std::vector<Condition>& before, const std::vector<Condition>& after) {
    return std::equal(
        before.begin(),
        before.end(),
        after.begin(),
        after.end(),
        [](const Condition& a, const Condition& b) {
            return a.type == b.type && a.status == b.status && a.reason == b.reason &&
                   a.observed_generation == b.observed_generation;
        });
}

std::optional<Duration> StatusWriter::wait_for_progress(const ObjectKey& key) {
    const Duration passed = writes_.since_last(key);
    return passed < kProgressEvery ? std::optional(kProgressEvery - passed) : std::nullopt;
}

Result<StatusWrite> StatusWriter::send(const ObjectKey& key, const Json& body) {
    const Result<Object> stored = client_.apply_status(kind_, key, body);
    if (!stored) {
        // Deleted meanwhile, recreated under this name, or changed (the body has the uid and the
        // resource version): its next event reconciles it.
        if (stored.error().code == ErrorCode::kNotFound ||
            stored.error().code == ErrorCode::kConflict) {
            forget(key);
            return StatusWrite{StatusOutcome::kGone, std::nullopt};
        }
        return fail(stored.error());
    }
    writes_.note(key, stored->resource_version);
    return StatusWrite{StatusOutcome::kWritten, std::nullopt};
}

}  // namespace stoker::control
