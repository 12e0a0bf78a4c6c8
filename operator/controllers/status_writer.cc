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

std::optional<Duration> StatusWriter::wait_for_turn(const ObjectKey& key, bool progress) {
    const Duration passed = writes_.since_last(key);
    if (progress && passed < kProgressEvery) {
        return kProgressEvery - passed;
    }
    return take_turn(*(progress ? progress_ : conditions_).lock(), key, clock_.now());
}

std::optional<Duration> StatusWriter::take_turn(
    Budget& budget, const ObjectKey& key, TimePoint now) {
    if (const auto turn = budget.turns.find(key); turn != budget.turns.end()) {
        if (now < turn->second) {
            return turn->second - now;
        }
        budget.turns.erase(turn);
        return std::nullopt;
    }
    const Duration wait = budget.bucket.reserve(now);
    if (wait == Duration{}) {
        return std::nullopt;
    }
    budget.turns[key] = now + wait;
    return wait;
}

void StatusWriter::forget(const ObjectKey& key) {
    writes_.forget(key);
    conditions_.lock()->turns.erase(key);
    progress_.lock()->turns.erase(key);
}

Result<StatusWrite> StatusWriter::send(const ObjectKey& key, const Json& body) {
    const Result<Object> stored = client_.apply_status(kind_, key, body);
    if (!stored) {
        // The object was deleted, recreated under this name, or changed (the body has uid and
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
