#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include "common/domain/segment_format.h"
#include "sidecar/core/fetch_engine.h"
#include "tests/support/dataset.h"

namespace stoker::sidecar {

inline constexpr TimePoint kNow{std::chrono::seconds{1000}};
inline constexpr ConnectionId kTrainer{1};
inline constexpr ConnectionId kWorker{2};
inline constexpr StreamId kStream{7};
inline constexpr std::uint64_t kPayload = 1000;
inline const Bytes kRecord{domain::record_bytes(kPayload)};
inline const Error kDown{ErrorCode::kUnavailable, "503 for 000000"};
inline const Error kGone{ErrorCode::kNotFound, "404 for 000000"};
inline const Error kDiskFull{ErrorCode::kResourceExhausted, "disk full"};

// Ten equal samples; room for everything unless a test says otherwise.
class FetchEngineTest : public testing::Test {
protected:
    void make(
        EngineLimits limits, Bytes grant, std::unique_ptr<EvictionPolicy> eviction = nullptr) {
        engine.emplace(
            dataset.manifest(), limits, EngineGrant{grant, std::nullopt}, std::move(eviction));
        engine->open(kNow);
        engine->on_connect(kTrainer, kStream);
    }

    void make(Bytes grant = Bytes::unlimited()) { make(EngineLimits{}, grant); }

    // The last `ahead` samples of the plan are the first ones of the next epoch.
    Effects plan(
        std::vector<SampleIndex> samples, std::uint64_t epoch = 1, std::uint64_t ahead = 0) {
        return engine->on_plan(
            kTrainer, StreamPlan::make(epoch, std::move(samples), 0, 10, ahead).value(), kNow);
    }

    Effects fetch(std::vector<SampleIndex> samples, ConnectionId connection = kTrainer) {
        return engine->on_fetch(connection, ++request, samples, kNow);
    }

    Effects consume(std::vector<SampleIndex> samples, std::uint64_t epoch = 1) {
        return engine->on_consumed(kTrainer, epoch, samples, kNow);
    }

    Effects stored(SampleIndex sample) { return engine->on_stored(sample, kNow); }

    test::Dataset dataset{std::vector<std::uint64_t>(10, kPayload)};
    std::optional<FetchEngine> engine;
    std::uint64_t request = 0;
};

inline StartFetch resident(SampleIndex sample) {
    return {sample, domain::SegmentClass::kResident};
}

inline StartFetch window(SampleIndex sample) {
    return {sample, domain::SegmentClass::kWindow};
}

inline FetchReply ready(std::uint64_t request, std::size_t count = 1, ConnectionId who = kTrainer) {
    return {who, request, std::vector(count, FetchOutcome::kReady), {}};
}

}  // namespace stoker::sidecar
