#include "sidecar/core/fetch_engine.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "common/base/check.h"
#include "sidecar/core/eviction/never_evict.h"

namespace stoker::sidecar {

using domain::SegmentClass;

namespace {

constexpr std::size_t kRefusalMessagesMax = 4096;
constexpr std::uint32_t kGuestChecksMax = 64;  // verifications a second
constexpr std::uint64_t kReadaheadPositionsMin = 8;
constexpr std::uint64_t kReadaheadPositionsMax = 4096;

std::uint32_t readahead_positions(const SampleSizes& sizes, Bytes readahead) {
    const std::uint64_t count = std::max<std::uint64_t>(sizes.count(), 1);
    const std::uint64_t mean = std::max<std::uint64_t>(sizes.total().count() / count, 1);
    return static_cast<std::uint32_t>(
        std::clamp(readahead.count() / mean, kReadaheadPositionsMin, kReadaheadPositionsMax));
}

// Asking again cannot help: the object is gone, or is not the one that was listed.
bool is_final(ErrorCode code) {
    switch (code) {
        case ErrorCode::kUnavailable:
        case ErrorCode::kDeadlineExceeded:
        case ErrorCode::kForbidden:  // credentials are repaired while jobs run
        case ErrorCode::kResourceExhausted:
        case ErrorCode::kCancelled:
        case ErrorCode::kInternal:
            return false;
        default:
            return true;
    }
}

}  // namespace

FetchEngine::FetchEngine(
    const SampleSizes& sizes,
    EngineLimits limits,
    EngineGrant grant,
    std::unique_ptr<EvictionPolicy> eviction)
    : limits_(limits),
      grant_(grant),
      table_(sizes),
      eviction_(eviction != nullptr ? std::move(eviction) : std::make_unique<NeverEvict>()),
      resident_gate_(limits.store_gate),
      window_gate_(limits.store_gate),
      origin_gate_(limits.origin_gate),
      readahead_positions_(readahead_positions(sizes, limits.readahead)) {}

void FetchEngine::adopt(SampleIndex sample, SegmentClass segment_class) {
    table_.adopt(sample, segment_class);
    if (segment_class == SegmentClass::kResident) {
        eviction_->on_resident(sample, table_.record_bytes(sample));
    } else {
        table_.at(sample).spare = true;
        spares_.push_back(sample);
    }
}

Effects FetchEngine::open(TimePoint now) {
    if (!spares_.empty()) {
        sweep_at_ = now + limits_.adopt_grace;
    }
    origin_rate_.set(grant_.origin_bytes_per_second, now);
    enforce_grant();
    return pump(now);
}

void FetchEngine::on_connect(ConnectionId connection, std::optional<StreamId> stream, Party party) {
    book_.connect(connection, party);
    stream_of_[connection] = stream;
    if (stream) {
        streams_.join(*stream, party);
    }
}

Effects FetchEngine::on_disconnect(ConnectionId connection, TimePoint now) {
    const Party party = book_.party_of(connection);
    const auto left = book_.disconnect(connection);
    if (!book_.has(party)) {
        checks_.erase(party);
    }
    for (const SampleIndex sample : left.abandoned) {
        table_.at(sample).demanded = false;
        consider(sample);
    }
    for (const SampleIndex sample : left.held) {
        release(sample);
    }
    const auto stream = stream_of_.at(connection);
    stream_of_.erase(connection);
    if (stream) {
        if (bypassing_.erase(connection) > 0) {
            streams_.let_go(*stream);
        }
        if (const auto plan = streams_.leave(*stream)) {
            release_plan(*plan);
        }
    }
    return pump(now);
}

Effects FetchEngine::on_plan(ConnectionId connection, StreamPlan plan, TimePoint now) {
    const auto stream = stream_of_.at(connection);
    STOKER_CHECK(stream.has_value(), "a plan belongs to a stream");
    for (std::uint32_t position = plan.frontier(); position < plan.horizon(); ++position) {
        if (!plan.is_read(position)) {
            ++table_.at(plan.sample_at(position)).needs;
        }
    }
    if (const auto old = streams_.replace_plan(*stream, std::move(plan))) {
        release_plan(*old);
    }
    return pump(now);
}

Effects FetchEngine::on_consumed(
    ConnectionId connection,
    std::uint64_t epoch,
    const std::vector<SampleIndex>& samples,
    TimePoint now,
    ReadCounts* counts) {
    const auto stream_id = stream_of_.at(connection);
    Stream* stream = stream_id ? streams_.with_plan(*stream_id) : nullptr;
    const bool current = stream != nullptr && stream->plan->epoch() == epoch;
    const Party party = book_.party_of(connection);
    const bool is_heard = party == kOwnParty || !is_own_here();
    const bool leave_cache = table_.account().resident > limits_.page_cache;
    for (const SampleIndex sample : samples) {
        SampleRecord& record = table_.at(sample);
        const bool hit = record.state == SampleState::kStored &&
                         record.segment_class == SegmentClass::kResident && !record.doomed &&
                         !record.fresh;
        if (counts != nullptr) {
            count_read(sample, party, *counts);
        }
        record.fresh = record.fresh && record.party != party;
        if (is_heard) {
            eviction_->on_read(sample, hit);
        }
        if (current && stream->plan->read(sample)) {
            --record.needs;
        }
        if (book_.release(connection, sample)) {
            --record.holds;
        }
        consider(sample);
        if (leave_cache && record.state == SampleState::kStored &&
            (record.needs == 0 || !streams_.is_due(sample, readahead_positions_))) {
            effects_.wont_need.push_back(sample);
        }
    }
    return pump(now);
}

void FetchEngine::count_read(SampleIndex sample, Party party, ReadCounts& counts) const {
    const SampleRecord& record = table_.at(sample);
    // Clients see a sample as soon as it is published, the engine a moment later that it is stored.
    if (record.state != SampleState::kStored && record.state != SampleState::kFetching) {
        return;
    }
    const bool is_first = record.fresh && record.party == party;
    ++(is_first ? counts.fetched_samples : counts.hit_samples);
    (is_first ? counts.fetched_bytes : counts.hit_bytes) += table_.payload_bytes(sample);
}

Effects FetchEngine::on_fetch(
    ConnectionId connection,
    std::uint64_t request_id,
    const std::vector<SampleIndex>& samples,
    TimePoint now) {
    const auto held = book_.take_held(connection);
    const auto seen = book_.take_seen(connection);
    const Party party = book_.party_of(connection);
    if (samples.empty()) {
        effects_.replies.push_back({connection, request_id, {}, {}});
    } else {
        const std::uint64_t ticket = book_.open(connection, request_id, samples.size());
        counters_.demanded_samples += samples.size();
        for (std::uint32_t i = 0; i < samples.size(); ++i) {
            const bool again = std::ranges::binary_search(held, samples[i]) ||
                               std::ranges::binary_search(seen, samples[i]);
            demand(samples[i], {ticket, i}, party, again && may_verify(party, now));
        }
    }
    for (const SampleIndex sample : held) {
        release(sample);
    }
    return pump(now);
}

// A guest that calls everything damaged would keep the disk busy.
bool FetchEngine::may_verify(Party party, TimePoint now) {
    if (party == kOwnParty) {
        return true;
    }
    Checks& checks = checks_[party];
    if (now - checks.since >= std::chrono::seconds{1}) {
        checks = {now, 0};
    }
    return checks.count++ < kGuestChecksMax;
}

void FetchEngine::demand(
    SampleIndex sample, DemandBook::Place place, Party party, bool suspicious) {
    SampleRecord& record = table_.at(sample);
    if (record.state == SampleState::kStored && !record.verifying && !suspicious) {
        const bool held = DemandBook::may_hold(party, table_.charged_to(sample));
        record.holds += held ? 1 : 0;
        ++counters_.demand_ready_samples;
        book_.settle(sample, place, FetchOutcome::kReady, {}, held);
        return;
    }
    if (record.state == SampleState::kRefused) {
        const auto words = refusals_.find(sample);
        ++counters_.demand_failed_samples;
        book_.settle(
            sample,
            place,
            FetchOutcome::kOriginError,
            words == refusals_.end()
                ? fmt::format("sample {} is not at the origin as it was listed", sample)
                : words->second);
        return;
    }
    if (record.state == SampleState::kStored && !record.verifying) {
        record.verifying = true;
        effects_.verifies.push_back(sample);
    }
    if (record.state == SampleState::kAbsent) {
        book_.queue(party, sample);
    }
    record.demanded = true;
    book_.wait(sample, place);
}

Effects FetchEngine::on_stored(SampleIndex sample, TimePoint now) {
    gate_of(table_.at(sample).segment_class).on_success();
    // Residents have the stricter limit (reservedFree). Where all is resident, no window sample
    // would ever come to try the other gate.
    if (resident_gate_.is_closed()) {
        window_gate_.on_success();
    }
    origin_gate_.on_success();
    last_origin_error_.clear();
    if (is_admitting()) {
        last_store_error_.clear();
    }
    table_.finish(sample);
    ++counters_.stored_samples;
    counters_.stored_bytes += table_.payload_bytes(sample).count();
    settle_ready(sample);
    return pump(now);
}

Effects FetchEngine::on_fetch_failed(SampleIndex sample, const Error& error, TimePoint now) {
    SampleRecord& record = table_.at(sample);
    const bool is_ours = record.party == kOwnParty || !is_own_here();
    gate_of(record.segment_class).on_abandoned();
    forget_resident(sample);
    table_.abandon(sample);
    ++counters_.origin_failures;
    last_origin_error_ = error.message;
    if (is_final(error.code)) {
        origin_gate_.on_success();  // it answers
        table_.refuse(sample);
        if (refusals_.size() < kRefusalMessagesMax) {
            refusals_[sample] = error.message;
        }
        settle_failed(sample, error.message);
        return pump(now);
    }
    if (error.code == ErrorCode::kResourceExhausted) {
        record.failures =
            UINT8_MAX;  // too large for the origin's memory: clients read it themselves
        settle_bypassed(sample);
        return pump(now);
    }
    if (is_ours) {
        origin_gate_.on_failure(now);  // what a guest asks for does not stop our prefetches
    }
    if (record.demanded) {
        settle_failed(sample, error.message);
    } else {
        record.failures = static_cast<std::uint8_t>(std::min(record.failures + 1, 255));
    }
    streams_.rewind(sample);
    return pump(now);
}

Effects FetchEngine::on_store_failed(SampleIndex sample, const Error& error, TimePoint now) {
    gate_of(table_.at(sample).segment_class).on_failure(now);
    origin_gate_.on_success();
    forget_resident(sample);
    table_.abandon(sample);
    ++counters_.store_failures;
    last_store_error_ = error.message;
    settle_bypassed(sample);
    streams_.rewind(sample);
    return pump(now);
}

Effects FetchEngine::on_verified(SampleIndex sample, bool intact, TimePoint now) {
    SampleRecord& record = table_.at(sample);
    STOKER_CHECK(record.verifying, "only a sample that is being verified can be found intact");
    record.verifying = false;
    if (intact) {
        settle_ready(sample);
        return pump(now);
    }
    ++counters_.corrupt_samples;
    forget_resident(sample);
    table_.remove(sample);
    streams_.rewind(sample);
    for (const Party party : book_.parties_waiting(sample)) {
        book_.queue(party, sample);
    }
    return pump(now);
}

Effects FetchEngine::on_grant(EngineGrant grant, TimePoint now) {
    grant_ = grant;
    origin_rate_.set(grant.origin_bytes_per_second, now);
    enforce_grant();
    return pump(now);
}

Effects FetchEngine::on_aside(bool aside, TimePoint now) {
    aside_ = aside;
    return pump(now);
}

Effects FetchEngine::on_bypass(ConnectionId connection, bool bypassing, TimePoint now) {
    const auto found = stream_of_.find(connection);
    if (found == stream_of_.end() || !found->second) {
        return {};
    }
    if (bypassing && bypassing_.insert(connection).second) {
        streams_.hold(*found->second);
    } else if (!bypassing && bypassing_.erase(connection) > 0) {
        streams_.let_go(*found->second);
    }
    return pump(now);
}

Effects FetchEngine::tick(TimePoint now) {
    sweep_adopted(now);
    return pump(now);
}

std::optional<TimePoint> FetchEngine::next_deadline(TimePoint now) const {
    if (more_to_scan_) {
        return now;
    }
    std::optional<TimePoint> next = sweep_at_;
    if (const auto at = origin_rate_.allows_at(now)) {
        next = std::min(next.value_or(*at), *at);
    }
    if (const auto at = origin_rate_.allows_urgent_at(now); at && !book_.are_queues_empty()) {
        next = std::min(next.value_or(*at), *at);
    }
    for (const CircuitBreaker* gate : {&resident_gate_, &window_gate_, &origin_gate_}) {
        const auto at = gate->retries_at();
        if (at && *at > now) {
            next = std::min(next.value_or(*at), *at);
        }
    }
    return next;
}

bool FetchEngine::is_admitting() const {
    return resident_gate_.is_closed() && window_gate_.is_closed();
}

CircuitBreaker& FetchEngine::gate_of(SegmentClass segment_class) {
    return segment_class == SegmentClass::kResident ? resident_gate_ : window_gate_;
}

void FetchEngine::settle_ready(SampleIndex sample) {
    SampleRecord& record = table_.at(sample);
    record.demanded = false;
    record.holds += book_.settle_ready(sample, table_.charged_to(sample));
    consider(sample);
}

void FetchEngine::settle_bypassed(SampleIndex sample) {
    table_.at(sample).demanded = false;
    counters_.demand_bypassed_samples += book_.settle_all(sample, FetchOutcome::kReadAtOrigin);
}

void FetchEngine::settle_failed(SampleIndex sample, const std::string& message) {
    table_.at(sample).demanded = false;
    counters_.demand_failed_samples +=
        book_.settle_all(sample, FetchOutcome::kOriginError, message);
}

void FetchEngine::release(SampleIndex sample) {
    --table_.at(sample).holds;
    consider(sample);
}

void FetchEngine::release_plan(const StreamPlan& plan) {
    for (std::uint32_t position = plan.frontier(); position < plan.horizon(); ++position) {
        if (!plan.is_read(position)) {
            const SampleIndex sample = plan.sample_at(position);
            --table_.at(sample).needs;
            consider(sample);
        }
    }
}

}  // namespace stoker::sidecar
