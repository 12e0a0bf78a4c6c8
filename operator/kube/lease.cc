#include "operator/kube/lease.h"

#include <utility>

#include <cpprest/json.h>
#include <fmt/format.h>

#include "operator/kube/micro_time.h"
#include "operator/kube/resource_kind.h"

namespace stoker::control {

namespace {

constexpr double kAcquireJitter = 1.2;

std::int64_t whole_seconds(Duration duration) {
    return std::chrono::ceil<std::chrono::seconds>(duration).count();
}

}  // namespace

LeaseRecord read_lease(const Json& lease) {
    const auto& value = lease.value();
    LeaseRecord record;
    record.holder = string_at(value, {"spec", "holderIdentity"});
    record.duration_seconds = integer_at(value, {"spec", "leaseDurationSeconds"}).value_or(0);
    record.acquire_time = string_at(value, {"spec", "acquireTime"});
    record.renew_time = string_at(value, {"spec", "renewTime"});
    record.transitions = integer_at(value, {"spec", "leaseTransitions"}).value_or(0);
    return record;
}

Json write_lease(const ObjectKey& key, const LeaseRecord& record, const Json* base) {
    auto lease = base != nullptr ? base->value() : web::json::value::object();
    lease["apiVersion"] = web::json::value(kinds::kLeases.api_version());
    lease["kind"] = web::json::value(kinds::kLeases.kind);
    auto& metadata = lease["metadata"];
    metadata["name"] = web::json::value(key.name);
    metadata["namespace"] = web::json::value(key.ns);
    auto& spec = lease["spec"];
    spec["holderIdentity"] = web::json::value(record.holder);
    spec["leaseDurationSeconds"] = web::json::value(record.duration_seconds);
    spec["acquireTime"] = web::json::value(record.acquire_time);
    spec["renewTime"] = web::json::value(record.renew_time);
    spec["leaseTransitions"] = web::json::value(record.transitions);
    return Json(std::move(lease));
}

bool is_valid(const LeaseTiming& timing) {
    return timing.lease > timing.renew_deadline &&
           timing.renew_deadline > timing.retry + timing.retry / 5 &&
           timing.retry > Duration::zero() && timing.lease >= std::chrono::seconds{1};
}

LeaseMachine::LeaseMachine(std::string identity, LeaseTiming timing, std::uint64_t seed)
    : identity_(std::move(identity)),
      timing_(timing),
      prng_(seed) {}

LeaseStep LeaseMachine::step(TimePoint now, WallTime wall_now) {
    if (leads_ && !may_write(now)) {
        leads_ = false;
        return LeaseLost{"the lease could not be renewed in time"};
    }
    if (now < next_attempt_) {
        return LeaseWait{next_attempt_};
    }
    if (knowledge_ == Knowledge::kStale) {
        return LeaseRead{};
    }
    if (knowledge_ == Knowledge::kAbsent) {
        return LeaseCreate{claim(wall_now)};
    }
    const bool ours = record_.holder == identity_;
    if (leads_ && !ours) {
        leads_ = false;
        return LeaseLost{fmt::format("{} holds the lease", record_.holder)};
    }
    if (ours || record_.holder.empty() || has_expired(now)) {
        return LeaseUpdate{claim(wall_now)};
    }
    knowledge_ = Knowledge::kStale;
    next_attempt_ = now + pause();
    return LeaseWait{next_attempt_};
}

void LeaseMachine::on_read(const LeaseRecord& record, TimePoint now) {
    remember(record, now);
    knowledge_ = Knowledge::kRead;
}

void LeaseMachine::on_absent() {
    knowledge_ = Knowledge::kAbsent;
}

void LeaseMachine::on_written(const LeaseRecord& record, TimePoint began, TimePoint now) {
    remember(record, now);
    knowledge_ = Knowledge::kWritten;
    leads_ = true;
    renewed_at_ = began;
    next_attempt_ = now + timing_.retry;
}

void LeaseMachine::on_failed(TimePoint now) {
    // A renewal first writes over the known version; if that fails, the next read shows the reason.
    const bool from_memory = knowledge_ == Knowledge::kWritten;
    knowledge_ = Knowledge::kStale;
    next_attempt_ = from_memory ? now : now + pause();
}

LeaseRecord LeaseMachine::released(const LeaseRecord& record, WallTime wall_now) {
    LeaseRecord free = record;
    free.holder.clear();
    free.duration_seconds = 1;
    free.renew_time = format_micro_time(wall_now);
    free.acquire_time = free.renew_time;
    return free;
}

LeaseRecord LeaseMachine::claim(WallTime wall_now) const {
    LeaseRecord next;
    next.holder = identity_;
    next.duration_seconds = whole_seconds(timing_.lease);
    next.renew_time = format_micro_time(wall_now);
    next.acquire_time = next.renew_time;
    if (knowledge_ == Knowledge::kAbsent) {
        return next;
    }
    next.transitions = record_.transitions;
    if (record_.holder == identity_) {
        next.acquire_time = record_.acquire_time;
    } else {
        next.transitions++;
    }
    return next;
}

bool LeaseMachine::has_expired(TimePoint now) const {
    const Duration duration = record_.duration_seconds > 0
                                  ? Duration{std::chrono::seconds{record_.duration_seconds}}
                                  : timing_.lease;
    return now - changed_at_ >= duration;
}

// Candidates use jitter so that they do not all ask at once; a leader keeps its interval.
Duration LeaseMachine::pause() {
    const double stretch = leads_ ? 1.0 : 1.0 + prng_.unit() * kAcquireJitter;
    return std::chrono::duration_cast<Duration>(timing_.retry * stretch);
}

void LeaseMachine::remember(const LeaseRecord& record, TimePoint now) {
    if (!seen_ || !(record == record_)) {
        changed_at_ = now;
    }
    seen_ = true;
    record_ = record;
}

}  // namespace stoker::control
