#include "tests/unit/sidecar/core/engine_world.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <span>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "common/domain/segment_format.h"

namespace stoker::test {

using domain::SegmentClass;
using sidecar::ConnectionId;
using sidecar::Effects;
using sidecar::FetchOutcome;
using sidecar::SampleIndex;
using sidecar::StreamId;

namespace {

constexpr std::uint64_t kSizeMax = 3000;

Dataset small_dataset(Prng& prng) {
    return Dataset::random(1 + prng.below(30), kSizeMax, prng());
}

sidecar::EngineLimits random_limits(Prng& prng) {
    sidecar::EngineLimits limits;
    limits.window = Bytes{prng.below(5) == 0 ? prng.below(4000) : 4000 + prng.below(30000)};
    limits.memory = Bytes{prng.below(5) == 0 ? prng.below(3000) : 3000 + prng.below(9000)};
    limits.max_in_flight = static_cast<std::uint32_t>(1 + prng.below(12));
    limits.readahead = Bytes{prng.below(20000)};
    limits.page_cache = prng.below(2) == 0 ? Bytes::unlimited() : Bytes{prng.below(20000)};
    return limits;
}

sidecar::EngineGrant random_grant(Prng& prng, TimePoint now) {
    sidecar::EngineGrant grant{Bytes{prng.below(60000)}, std::nullopt, 0};
    if (prng.below(8) == 0) {
        grant.resident_bytes = prng.below(2) == 0 ? Bytes::zero() : Bytes::unlimited();
    }
    if (prng.below(3) == 0) {
        grant.valid_until = now + std::chrono::milliseconds{prng.below(3000)};
    }
    if (prng.below(4) == 0) {
        grant.origin_bytes_per_second = 1 + prng.below(20000);
    }
    if (prng.below(4) == 0) {
        grant.fill_bytes_per_second = prng.below(20000);
    }
    return grant;
}

}  // namespace

EngineWorld::EngineWorld(std::uint64_t seed, std::unique_ptr<sidecar::EvictionPolicy> eviction)
    : prng_(seed),
      dataset_(small_dataset(prng_)),
      limits_(random_limits(prng_)),
      engine_(
          dataset_.manifest(), limits_, random_grant(prng_, now_), audited(std::move(eviction))) {
    for (SampleIndex sample = 0; sample < count(); ++sample) {
        if (chance(20)) {
            const auto segment_class = chance(70) ? SegmentClass::kResident : SegmentClass::kWindow;
            // Earlier leaders stored no more than their window budget.
            if (segment_class == SegmentClass::kWindow &&
                engine_.account().window + record_bytes(sample) > limits_.window) {
                continue;
            }
            engine_.adopt(sample, segment_class);
            stored_[sample] = {segment_class};
        }
    }
    apply(engine_.open(now_), true);
}

void EngineWorld::lay_in_chunks() {
    std::vector<std::uint32_t> chunk_of;
    const std::uint64_t chunks = 1 + prng_.below(count());
    for (std::uint64_t sample = 0; sample < count(); ++sample) {
        chunk_of.push_back(static_cast<std::uint32_t>(prng_.below(chunks)));
    }
    chunks_ = {std::move(chunk_of), dataset_.manifest()};
    engine_.set_chunks(&chunks_);
}

std::unique_ptr<sidecar::EvictionPolicy> EngineWorld::audited(
    std::unique_ptr<sidecar::EvictionPolicy> eviction) {
    if (eviction == nullptr) {
        return nullptr;
    }
    auto audit = std::make_unique<AuditedPolicy>(std::move(eviction));
    audit_ = audit.get();
    return audit;
}

void EngineWorld::step() {
    ClientEntry* client = any_client();
    const std::uint64_t dice = prng_.below(100);
    if (dice < 3 || client == nullptr) {
        connect();
    } else if (dice < 4) {
        disconnect(client->first);
    } else if (dice < 8) {
        make_plan(*client);
    } else if (dice < 28) {
        fetch(*client);
    } else if (dice < 48) {
        consume(*client);
    } else if (dice < 88) {
        finish_fetch();
    } else if (dice < 92) {
        finish_verify();
    } else if (dice < 95) {
        change_grant();
    } else {
        pass_time();
    }
}

void EngineWorld::settle() {
    // Each round finishes all work in flight; breakers close within their longest back-off.
    for (int round = 0; round < 2000; ++round) {
        while (!in_flight_.empty() || !verifying_.empty()) {
            finish_fetch();
            finish_verify();
        }
        const auto next = engine_.next_deadline(now_);
        if (!next) {
            break;
        }
        now_ = std::max(now_, *next);
        apply(engine_.tick(now_));
    }
    for (const auto& [id, client] : clients_) {
        EXPECT_TRUE(client.pending.empty())
            << "connection " << id.value() << " waits for ever for " << client.pending[0].id;
    }
    check_prefetched();
}

void EngineWorld::end() {
    while (!clients_.empty()) {
        disconnect(clients_.begin()->first);
    }
    settle();
    EXPECT_EQ(engine_.account().window, Bytes::zero());
    EXPECT_EQ(engine_.account().doomed, Bytes::zero());
    EXPECT_EQ(engine_.account().in_flight, Bytes::zero());
    for (const auto& [sample, stored] : stored_) {
        EXPECT_EQ(stored.segment_class, SegmentClass::kResident) << "sample " << sample;
    }
}

void EngineWorld::connect() {
    const ConnectionId id{++last_connection_};
    Client client;
    if (chance(80)) {
        client.stream = StreamId{1 + prng_.below(3)};
    }
    if (has_guests_) {
        const std::uint64_t number = client.stream ? client.stream->value() : prng_.below(3);
        client.party = sidecar::Party{static_cast<std::uint8_t>(number % 3)};
    }
    engine_.on_connect(id, client.stream, client.party);
    if (!chunks_.is_empty() && client.stream) {
        engine_.set_by_chunk(*client.stream, chance(70));
    }
    clients_.emplace(id, std::move(client));
}

void EngineWorld::disconnect(ConnectionId id) {
    const auto stream = clients_.at(id).stream;
    clients_.erase(id);
    const bool last = stream && std::ranges::none_of(clients_, [&](const auto& entry) {
                          return entry.second.stream == stream;
                      });
    if (last) {
        plans_.erase(*stream);
    }
    apply(engine_.on_disconnect(id, now_));
}

void EngineWorld::make_plan(ClientEntry& client) {
    if (!client.second.stream) {
        return;
    }
    Plan plan;
    plan.epoch = ++last_epoch_;
    const auto before = plans_.find(*client.second.stream);
    plan.samples = any_order();
    if (before != plans_.end() && chance(80)) {
        plan.samples.insert(  // matches the foreseen order
            plan.samples.begin(),
            before->second.ahead.begin(),
            before->second.ahead.end());
    }
    if (chance(60)) {
        plan.ahead = any_order();
    }
    const std::uint64_t start = chance(20) ? prng_.below(plan.samples.size() + 1) : 0;
    plan.read.assign(plan.samples.size(), false);
    std::fill_n(plan.read.begin(), static_cast<std::ptrdiff_t>(start), true);
    auto all = plan.samples;
    all.insert(all.end(), plan.ahead.begin(), plan.ahead.end());
    auto made =
        sidecar::StreamPlan::make(plan.epoch, std::move(all), start, count(), plan.ahead.size());
    ASSERT_TRUE(made.has_value());
    plans_[*client.second.stream] = std::move(plan);
    apply(engine_.on_plan(client.first, *std::move(made), now_));
}

std::vector<SampleIndex> EngineWorld::any_order() {
    std::vector<SampleIndex> order(count());
    std::iota(order.begin(), order.end(), 0U);
    std::shuffle(order.begin(), order.end(), prng_);
    if (chance(50)) {
        order.resize(1 + prng_.below(count()));
    }
    for (std::uint64_t repeats = chance(30) ? prng_.below(5) : 0; repeats > 0; --repeats) {
        order.push_back(any_sample());
    }
    return order;
}

void EngineWorld::fetch(ClientEntry& client) {
    auto& [id, state] = client;
    Request request{++last_request_, {}, {}};
    const auto plan = state.stream ? plans_.find(*state.stream) : plans_.end();
    const std::uint64_t wanted = prng_.below(6);
    if (plan != plans_.end() && chance(80)) {
        for (std::size_t i = 0; i < plan->second.samples.size(); ++i) {
            if (!plan->second.read[i] && request.samples.size() < wanted && chance(80)) {
                request.samples.push_back(plan->second.samples[i]);
            }
        }
    } else {
        for (std::uint64_t i = 0; i < wanted; ++i) {
            request.samples.push_back(any_sample());
        }
    }
    state.held.clear();
    state.lost.clear();
    state.pending.push_back(request);
    apply(engine_.on_fetch(id, request.id, request.samples, now_));
}

void EngineWorld::consume(ClientEntry& client) {
    auto& [id, state] = client;
    std::vector<SampleIndex> samples;
    const auto plan = state.stream ? plans_.find(*state.stream) : plans_.end();
    std::uint64_t epoch = last_epoch_ + 7;  // no stream's epoch
    if (plan != plans_.end()) {
        epoch = chance(90) ? plan->second.epoch : epoch;
        for (std::size_t i = 0; i < plan->second.samples.size() && samples.size() < 4; ++i) {
            const SampleIndex sample = plan->second.samples[i];
            if (!plan->second.read[i] && (stored_.contains(sample) || chance(10))) {
                samples.push_back(sample);
            }
        }
    }
    if (chance(10)) {
        samples.push_back(any_sample());
    }
    for (const SampleIndex sample : samples) {
        if (plan != plans_.end() && plan->second.epoch == epoch) {
            for (std::size_t i = 0; i < plan->second.samples.size(); ++i) {
                if (plan->second.samples[i] == sample && !plan->second.read[i]) {
                    plan->second.read[i] = true;
                    break;
                }
            }
        }
        if (const auto held = state.held.find(sample); held != state.held.end()) {
            state.held.erase(held);
        }
    }
    apply(engine_.on_consumed(id, epoch, samples, now_));
}

void EngineWorld::finish_fetch() {
    if (in_flight_.empty()) {
        return;
    }
    auto chosen = in_flight_.begin();
    std::advance(chosen, static_cast<std::ptrdiff_t>(prng_.below(in_flight_.size())));
    const auto [sample, flight] = *chosen;
    in_flight_.erase(chosen);
    if (stopping_.erase(sample) > 0 && chance(50)) {
        apply(engine_.on_stopped(sample, now_));
        return;
    }
    const std::uint64_t dice = faults_ ? prng_.below(100) : 100;
    if (dice < 13 && engine_.sample(sample).from_peer) {
        engine_.on_redirected(sample, now_);  // a peer that fails sends to the origin
    }
    if (dice < 10) {
        apply(engine_.on_fetch_failed(sample, {ErrorCode::kUnavailable, "503"}, now_));
    } else if (dice < 13) {
        refused_[sample] = now_;
        apply(engine_.on_fetch_failed(sample, {ErrorCode::kConflict, "other ETag"}, now_));
    } else if (dice < 20) {
        apply(engine_.on_store_failed(sample, {ErrorCode::kResourceExhausted, "full"}, now_));
    } else {
        stored_[sample] = flight;
        apply(engine_.on_stored(sample, now_));
    }
}

void EngineWorld::finish_verify() {
    if (verifying_.empty()) {
        return;
    }
    const SampleIndex sample = *verifying_.begin();
    verifying_.erase(sample);
    const bool intact = !faults_ || chance(50);
    if (!intact) {
        stored_.erase(sample);
        lose(sample);  // a client's hold on a damaged sample does not protect it
    }
    apply(engine_.on_verified(sample, intact, now_));
}

void EngineWorld::change_grant() {
    apply(engine_.on_grant(random_grant(prng_, now_), now_), true);
    if (has_groups_ && chance(50)) {
        change_group();
    }
}

void EngineWorld::change_group() {
    const std::vector<std::string> nodes{"a", "b", "c"};
    std::shared_ptr<sidecar::Placement> placement;
    if (chance(70)) {
        placement = std::make_shared<sidecar::Placement>(
            dataset_.manifest(),
            [this](SampleIndex sample) {
                return dataset_.manifest().sample(domain::SampleId{sample}).key;
            },
            std::span{nodes}.first(2 + prng_.below(2)),
            prng_.below(2));
    }
    apply(engine_.on_placement(std::move(placement), now_), true);
}

void EngineWorld::pass_time() {
    now_ += std::chrono::milliseconds{prng_.below(2000)};
    apply(engine_.tick(now_));
}

void EngineWorld::apply(const Effects& effects, bool grant_changed) {
    const bool may_drop_residents = grant_changed || doomed_before_ > Bytes::zero();
    std::uint64_t needed_drops = 0;
    std::uint64_t resident_drops = 0;
    end_holds();
    for (const SampleIndex sample : effects.drops) {
        const auto found = stored_.find(sample);
        ASSERT_NE(found, stored_.end()) << "drops sample " << sample << ", which is not stored";
        needed_drops += static_cast<std::uint64_t>(
            found->second.segment_class == SegmentClass::kWindow && is_needed(sample));
        resident_drops +=
            static_cast<std::uint64_t>(found->second.segment_class == SegmentClass::kResident);
        apply_drop(sample);
    }
    const std::uint64_t evicted =
        engine_.counters().evicted_resident_samples - seen_.evicted_resident_samples;
    EXPECT_TRUE(may_drop_residents || resident_drops == evicted) << "residents go without a reason";
    EXPECT_TRUE(audit_ != nullptr || has_groups_ || evicted == 0) << "evicts without a policy";
    // Samples that a stream needs are dropped only to make room, and those drops are counted.
    EXPECT_LE(
        needed_drops, engine_.counters().evicted_window_samples - seen_.evicted_window_samples);
    for (const SampleIndex sample : effects.stops) {
        EXPECT_TRUE(in_flight_.contains(sample) && engine_.sample(sample).in_parts);
        EXPECT_FALSE(engine_.sample(sample).demanded) << "stops what a client waits for";
        stopping_.insert(sample);
    }
    for (const auto& fetch : effects.fetches) {
        apply_fetch(fetch);
    }
    for (const SampleIndex sample : effects.verifies) {
        EXPECT_TRUE(stored_.contains(sample));
        EXPECT_TRUE(verifying_.insert(sample).second);
    }
    for (const auto& reply : effects.replies) {
        apply_reply(reply);
    }
    seen_ = engine_.counters();
    doomed_before_ = engine_.account().doomed;
    check_bytes();
    check_guests();
}

void EngineWorld::apply_drop(SampleIndex sample) {
    EXPECT_FALSE(is_held(sample)) << "drops sample " << sample << ", which a client holds";
    EXPECT_FALSE(verifying_.contains(sample));
    stored_.erase(sample);
}

void EngineWorld::apply_reply(const sidecar::FetchReply& reply) {
    const auto client = clients_.find(reply.connection);
    ASSERT_NE(client, clients_.end()) << "answers a connection that has ended";
    auto& pending = client->second.pending;
    const auto request = std::ranges::find(pending, reply.request_id, &Request::id);
    ASSERT_NE(request, pending.end()) << "answers request " << reply.request_id << " twice";
    ASSERT_EQ(reply.outcomes.size(), request->samples.size());
    bool failed = false;
    for (std::size_t i = 0; i < reply.outcomes.size(); ++i) {
        const SampleIndex sample = request->samples[i];
        const bool holds = client->second.party == sidecar::kOwnParty;
        if (reply.outcomes[i] == FetchOutcome::kReady && holds) {
            EXPECT_TRUE(stored_.contains(sample) || request->lost.contains(sample))
                << "sample " << sample << " is not ready";
            Client& holder = client->second;
            (request->lost.contains(sample) ? holder.lost : holder.held).insert(sample);
        }
        failed = failed || reply.outcomes[i] == FetchOutcome::kOriginError;
    }
    EXPECT_EQ(failed, !reply.message.empty());
    pending.erase(request);
}

SampleIndex EngineWorld::any_sample() {
    return static_cast<SampleIndex>(prng_.below(count()));
}

EngineWorld::ClientEntry* EngineWorld::any_client() {
    if (clients_.empty()) {
        return nullptr;
    }
    auto chosen = clients_.begin();
    std::advance(chosen, static_cast<std::ptrdiff_t>(prng_.below(clients_.size())));
    return &*chosen;
}

}  // namespace stoker::test
