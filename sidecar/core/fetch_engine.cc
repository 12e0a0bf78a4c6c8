#include "sidecar/core/fetch_engine.h"

#include <algorithm>
#include <iterator>

#include "common/base/check.h"

namespace stoker::sidecar {

using domain::SegmentClass;

namespace {

constexpr std::uint64_t kReadaheadPositionsMin = 8;
constexpr std::uint64_t kReadaheadPositionsMax = 4096;

std::uint32_t readahead_positions(const SampleSizes& sizes, Bytes readahead) {
    const std::uint64_t mean = sizes.total().count() / std::max(sizes.count(), std::uint64_t{1});
    const std::uint64_t positions = readahead.count() / std::max(mean, std::uint64_t{1});
    return static_cast<std::uint32_t>(
        std::clamp(positions, kReadaheadPositionsMin, kReadaheadPositionsMax));
}

}  // namespace

FetchEngine::FetchEngine(
    const SampleSizes& sizes,
    EngineLimits limits,
    EngineGrant grant,
    std::unique_ptr<EvictionPolicy> eviction)
    : limits_(limits),
      table_(sizes, std::move(eviction)),
      admission_(limits_),
      shares_(limits_, table_, book_),
      room_(limits_, grant, admission_, shares_, table_, streams_, counters_),
      readahead_positions_(readahead_positions(sizes, limits.readahead)) {}

Effects FetchEngine::open(TimePoint now) {
    admission_.rate.set(grant().origin_bytes_per_second, now);
    fill_.order(grant(), now);
    room_.open(now);
    return pump(now);
}

void FetchEngine::on_connect(ConnectionId connection, std::optional<StreamId> stream, Party party) {
    book_.connect(connection, party);
    readers_[connection] = {stream};
    if (stream) {
        streams_.join(*stream, party);
    }
}

Effects FetchEngine::on_disconnect(ConnectionId connection, TimePoint now) {
    const Party party = book_.party_of(connection);
    const auto left = book_.disconnect(connection);
    if (!book_.has(party)) {
        shares_.forget(party);
    }
    for (const SampleIndex sample : left.abandoned) {
        table_.at(sample).demanded = false;
        room_.reconsider(sample);
    }
    for (const SampleIndex sample : left.held) {
        release(sample);
    }
    const Reader reader = readers_.at(connection);
    readers_.erase(connection);
    if (reader.bypassing) {
        streams_.let_go(*reader.stream);
    }
    if (const auto plan = reader.stream ? streams_.leave(*reader.stream) : std::nullopt) {
        release_plan(*plan);
    }
    return pump(now);
}

Effects FetchEngine::on_plan(ConnectionId connection, StreamPlan plan, TimePoint now) {
    const auto stream = readers_.at(connection).stream;
    STOKER_CHECK(stream.has_value(), "a plan needs a stream");
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

Effects FetchEngine::extend_plan(ConnectionId connection, const PlanTail& tail, TimePoint now) {
    for (const SampleIndex sample : tail.samples) {
        ++table_.at(sample).needs;
    }
    for (const SampleIndex sample : streams_.extend_plan(*readers_.at(connection).stream, tail)) {
        --table_.at(sample).needs;
        room_.reconsider(sample);
    }
    return pump(now);
}

Effects FetchEngine::on_consumed(
    ConnectionId connection,
    std::uint64_t epoch,
    const std::vector<SampleIndex>& samples,
    TimePoint now,
    ReadCounts* counts) {
    const auto stream_id = readers_.at(connection).stream;
    Stream* stream = stream_id ? streams_.with_plan(*stream_id) : nullptr;
    const bool current = stream != nullptr && stream->plan->epoch() == epoch;
    const Party party = book_.party_of(connection);
    const bool leave_cache = table_.account().resident > limits_.page_cache;
    for (const SampleIndex sample : samples) {
        SampleRecord& record = table_.at(sample);
        const bool hit = table_.is_stored(sample) && record.is_granted() && !record.fresh;
        if (counts != nullptr) {
            count_read(sample, party, *counts);
        }
        record.fresh = record.fresh && record.party != party;
        if (!shares_.is_beside_owner(party)) {
            table_.eviction().on_read(sample, hit);
        }
        if (current && stream->plan->read(sample)) {
            --record.needs;
        }
        if (book_.release(connection, sample)) {
            --record.holds;
            charge_holder(sample);
        }
        room_.reconsider(sample);
        if (leave_cache && table_.is_stored(sample) &&
            (record.needs == 0 || !streams_.is_due(sample, readahead_positions_))) {
            effects_.wont_need.push_back(sample);
        }
    }
    return pump(now);
}

void FetchEngine::count_read(SampleIndex sample, Party party, ReadCounts& counts) const {
    const SampleRecord& record = table_.at(sample);
    // Clients see a sample once it is published; the engine learns a moment later that it is
    // stored.
    if (record.state != SampleState::kStored && record.state != SampleState::kFetching) {
        return;
    }
    const bool is_first = record.fresh && record.party == party && !record.from_peer;
    ++(is_first ? counts.fetched_samples : counts.hit_samples);
    (is_first ? counts.fetched_bytes : counts.hit_bytes) += table_.payload_bytes(sample);
}

Effects FetchEngine::on_fetch(
    ConnectionId connection,
    std::uint64_t request_id,
    const std::vector<SampleIndex>& samples,
    TimePoint now) {
    const auto ready = book_.take_ready(connection);
    const Party party = book_.party_of(connection);
    if (samples.empty()) {
        effects_.replies.push_back({connection, request_id, {}, {}});
    } else {
        const std::uint64_t ticket = book_.open(connection, request_id, samples.size());
        counters_.demanded_samples += samples.size();
        for (std::uint32_t i = 0; i < samples.size(); ++i) {
            const bool again = std::ranges::binary_search(ready.held, samples[i]) ||
                               std::ranges::binary_search(ready.seen, samples[i]);
            if (table_.at(samples[i]).state == SampleState::kRefused &&
                refusals_.take_ended(samples[i], now)) {
                table_.end_refusal(samples[i]);
            }
            demand(samples[i], {ticket, i}, party, again && shares_.may_verify(party, now));
        }
    }
    for (const SampleIndex sample : ready.held) {
        release(sample);
    }
    std::ranges::for_each(samples, [this](SampleIndex sample) { charge_holder(sample); });
    return pump(now);
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
        ++counters_.demand_failed_samples;
        book_.settle(sample, place, FetchOutcome::kOriginError, refusals_.message(sample));
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
    const SampleRecord& record = table_.at(sample);
    admission_.on_stored(record.segment_class, record.from_peer);
    end_take_over(sample, now);
    table_.finish(sample);
    fill_.end(sample);
    ++counters_.stored_samples;
    counters_.stored_bytes += table_.payload_bytes(sample).count();
    settle_ready(sample);
    return pump(now);
}

Effects FetchEngine::on_fetch_failed(SampleIndex sample, const Error& error, TimePoint now) {
    SampleRecord& record = table_.at(sample);
    admission_.store(record.segment_class).on_abandoned();
    admission_.origin_error = error.message;
    table_.remove(sample);
    fill_.end(sample);
    ++counters_.origin_failures;
    if (Refusals::is_refusal(error.code)) {
        admission_.origin.on_success();  // the origin has answered, with another error
        note_refused(sample);
        table_.refuse(sample);
        if (const auto ended = refusals_.add(sample, record.refusals, error.message, now)) {
            table_.end_refusal(*ended);
        }
        settle_failed(sample, error.message);
        return pump(now);
    }
    if (error.code == ErrorCode::kResourceExhausted) {
        note_refused(sample);
        record.failures = UINT8_MAX;  // too large for the origin's memory: clients read it
        settle_bypassed(sample);
        return pump(now);
    }
    if (!shares_.is_beside_owner(record.party)) {
        admission_.origin.on_failure(now);  // a guest's failed fetch must not stop other prefetches
    }
    if (record.demanded) {
        settle_failed(sample, error.message);
    } else {
        record.failures = static_cast<std::uint8_t>(std::min(record.failures + 1, UINT8_MAX - 1));
    }
    streams_.rewind(sample);
    fill_.rewind(sample);
    return pump(now);
}

Effects FetchEngine::on_store_failed(SampleIndex sample, const Error& error, TimePoint now) {
    SampleRecord& record = table_.at(sample);
    const bool lacks_space = record.in_parts && error.code == ErrorCode::kResourceExhausted;
    if (!lacks_space) {
        admission_.store(record.segment_class).on_failure(now);
    }
    if (!record.from_peer) {
        admission_.origin.on_success();
    }
    end_take_over(sample, now);
    admission_.store_error = error.message;
    room_.lose(sample);
    fill_.end(sample);
    if (lacks_space) {
        note_refused(sample);
        record.failures = UINT8_MAX;  // too large for the disk: clients read it
    } else {
        fill_.rewind(sample);
    }
    ++counters_.store_failures;
    settle_bypassed(sample);
    return pump(now);
}

Effects FetchEngine::on_verified(SampleIndex sample, bool intact, TimePoint now) {
    SampleRecord& record = table_.at(sample);
    STOKER_CHECK(record.verifying, "on_verified() for a sample that is not being verified");
    record.verifying = false;
    if (intact) {
        settle_ready(sample);
        return pump(now);
    }
    ++counters_.corrupt_samples;
    room_.lose(sample);
    book_.queue_again(sample);
    return pump(now);
}

Effects FetchEngine::on_grant(EngineGrant grant, TimePoint now) {
    admission_.rate.set(grant.origin_bytes_per_second, now);
    fill_.order(grant, now);
    room_.set_grant(grant);
    shares_.set_borrowed(room_.borrowed());
    return pump(now);
}

Effects FetchEngine::on_aside(bool aside, TimePoint now) {
    room_.set_aside(aside);
    return pump(now);
}

Effects FetchEngine::on_placement(std::shared_ptr<const Placement> placement, TimePoint now) {
    room_.set_placement(std::move(placement));
    fill_.restart();
    return pump(now);
}

Effects FetchEngine::on_slow(SampleIndex sample, TimePoint now) {
    const SampleRecord& record = table_.at(sample);
    if (record.state == SampleState::kFetching && record.from_peer && !record.slotless) {
        table_.give_slot(sample);
    }
    return pump(now);
}

void FetchEngine::on_redirected(SampleIndex sample, TimePoint now) {
    SampleRecord& record = table_.at(sample);
    STOKER_CHECK(record.from_peer, "on_redirected() for a fetch that is not from a peer");
    record.from_peer = false;
    if (record.slotless) {
        table_.take_slot(sample);
    }
    if (taking_over_.erase(sample) > 0) {
        return;  // start() has counted the fetch for the origin
    }
    admission_.rate.take(table_.payload_bytes(sample), now);
    if (!record.demanded) {
        admission_.origin.on_start();
    }
}

Effects FetchEngine::on_bypass(ConnectionId connection, bool bypassing, TimePoint now) {
    const auto found = readers_.find(connection);
    if (found == readers_.end() || !found->second.stream) {
        return {};
    }
    if (std::exchange(found->second.bypassing, bypassing) != bypassing) {
        bypassing ? streams_.hold(*found->second.stream) : streams_.let_go(*found->second.stream);
    }
    return pump(now);
}

Effects FetchEngine::tick(TimePoint now) {
    room_.sweep(now);
    return pump(now);
}

std::optional<TimePoint> FetchEngine::next_deadline(TimePoint now) const {
    // Continues the fill if its rate limit now allows more than at the last event.
    const bool may_go_on = fill_.is_open(table_.size()) && may_fill(now) &&
                           fits_ahead(fill_.next(), kOwnParty, chunks_ != nullptr);
    if (more_to_scan_ || may_go_on) {
        return now;
    }
    const bool has_urgent = std::ranges::any_of(
        table_.parted(), [this](SampleIndex sample) { return is_urgent(sample); });
    auto next = admission_.next_change(has_urgent || !book_.are_queues_empty(), now);
    for (const auto at : {room_.sweeps_at(), fill_.allows_at(table_.size(), now)}) {
        if (at) {
            next = std::min(next.value_or(*at), *at);
        }
    }
    return next;
}

void FetchEngine::settle_ready(SampleIndex sample) {
    SampleRecord& record = table_.at(sample);
    record.demanded = false;
    record.holds += book_.settle_ready(sample, table_.charged_to(sample));
    charge_holder(sample);
    room_.reconsider(sample);
}

void FetchEngine::settle_bypassed(SampleIndex sample) {
    table_.at(sample).demanded = false;
    counters_.demand_bypassed_samples += book_.settle_all(sample, FetchOutcome::kReadAtOrigin);
}

// Answers this party only: others that wait for the sample have their own turns and perhaps room.
void FetchEngine::settle_bypassed(SampleIndex sample, Party party) {
    counters_.demand_bypassed_samples +=
        book_.settle_party(sample, party, FetchOutcome::kReadAtOrigin);
    table_.at(sample).demanded = !book_.parties_waiting(sample).empty();
}

void FetchEngine::settle_failed(SampleIndex sample, const std::string& message) {
    table_.at(sample).demanded = false;
    counters_.demand_failed_samples +=
        book_.settle_all(sample, FetchOutcome::kOriginError, message);
}

void FetchEngine::release(SampleIndex sample) {
    --table_.at(sample).holds;
    charge_holder(sample);
    room_.reconsider(sample);
}

// Charges a window sample that only the own party still holds to the own party. In the share of the
// guest or the peers that it was fetched for, nothing could make room for it. If the own party's
// share has no room for such holds, end_one_hold() ends them.
void FetchEngine::charge_holder(SampleIndex sample) {
    const SampleRecord& record = table_.at(sample);
    if (record.holds > 0 && record.state == SampleState::kStored &&
        table_.charged_to(sample) != kOwnParty && !book_.is_held_by_others(sample)) {
        table_.charge_to_owner(sample);
    }
}

void FetchEngine::release_plan(const StreamPlan& plan) {
    for (std::uint32_t position = plan.frontier(); position < plan.horizon(); ++position) {
        if (!plan.is_read(position)) {
            const SampleIndex sample = plan.sample_at(position);
            --table_.at(sample).needs;
            room_.reconsider(sample);
        }
    }
}

}  // namespace stoker::sidecar
