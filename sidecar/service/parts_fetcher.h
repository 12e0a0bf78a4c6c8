#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "common/base/bytes.h"
#include "common/base/clock.h"
#include "common/base/result.h"
#include "common/domain/manifest.h"
#include "common/runtime/event_loop.h"
#include "sidecar/core/bypass_controller.h"
#include "sidecar/core/fetch_engine.h"
#include "sidecar/origin/origin.h"
#include "sidecar/service/sidecar_parts.h"
#include "sidecar/store/node_store.h"

namespace stoker::sidecar {

// Fetches samples too large for memory in byte ranges (parts), straight into their segments. The
// engine decides which samples, whose parts come first, and when the next part may be requested. A
// part is in memory from its request until it is written; at most `parts_max` parts are at a time.
//
// A sample ends with its first error, once its running parts have ended; none of its bytes are kept
// then. The origin repeats a failed request by itself. Use it on the loop's thread; the object must
// outlive the samples that were started.
class PartsFetcher {
public:
    struct Limits {
        Bytes part_bytes{};
        std::uint32_t parts_max = 0;
    };

    // Parts of together at most EngineLimits::parts_memory().
    static Limits limits_for(const EngineLimits& engine);

    // The end of one sample.
    struct Ended {
        StartFetch fetch;
        TimePoint started_at{};
        Status origin{};          // an error: the origin did not deliver the sample
        Status store{};           // an error: the store did not accept the sample
        bool is_damaged = false;  // the sample's bytes do not match the checksum stored with it
        bool is_stopped = false;  // by stop(); `origin` is an error, too
        std::uint32_t requests = 0;
        std::uint32_t attempts = 0;  // OriginBytes::attempts of the part with the most attempts
    };

    struct Events {
        std::function<bool(SampleIndex)> is_urgent;         // its parts come first
        std::function<bool(SampleIndex, Bytes)> take_part;  // whether a part may be requested now
        std::function<void(const FetchTimes&)> on_part;     // a part was written
        std::function<void(const Ended&)> on_end;           // once for each start()
    };

    // `parts`, `origin`, `store` and the bytes of `manifest` must outlive this object.
    PartsFetcher(
        const SidecarParts& parts,
        Origin& origin,
        NodeStore& store,
        const domain::ManifestView& manifest,
        Limits limits,
        Events events);
    PartsFetcher(const PartsFetcher&) = delete;
    PartsFetcher& operator=(const PartsFetcher&) = delete;

    ~PartsFetcher() { drop_unfinished(); }

    // Starts a sample; after a damaged fetch with that fetch's `started_at` and `attempts`.
    void start(const StartFetch& fetch, TimePoint started_at, std::uint32_t attempts = 0);

    // Requests no more parts of the sample. No effect if all parts are requested.
    void stop(SampleIndex sample);

    // Stops all samples.
    void stop();

    // Requests the parts that take_part() refused before.
    void go_on() { pump(); }

    // Frees the space of incomplete samples. Call it only when neither the origin nor the pool runs
    // any more: the loop may have ended before it learned that their work ended.
    void drop_unfinished();

private:
    struct Sample {
        Ended end;
        OriginFetch object;
        std::uint64_t requested_bytes = 0;
        std::uint32_t running = 0;  // requested parts that the loop does not know to have ended
        bool is_opening = false;    // the pool will set `writer` or end.store
        std::unique_ptr<SampleWriter> writer{};
        std::vector<std::uint32_t> checksums{};  // one per part
        std::optional<std::uint32_t> stored_crc32c{};
    };

    using SamplePtr = std::shared_ptr<Sample>;

    // One part, on its way from the origin to the disk.
    struct Part {
        SamplePtr sample;
        std::size_t index = 0;
        std::uint64_t offset = 0;
        TimePoint asked_at{};
        TimePoint arrived_at{};
    };

    void pump();
    [[nodiscard]] SamplePtr next() const;
    [[nodiscard]] Bytes next_part_bytes(const Sample& sample) const;
    void open(const SamplePtr& sample);
    void on_opened(const SamplePtr& sample);
    void request_next(const SamplePtr& sample);
    void on_answer(Part part, Result<OriginBytes> bytes);
    void on_failed(const SamplePtr& sample, const Error& error);
    void on_written(
        const Part& part, const Status& written, std::uint32_t crc32c, const OriginBytes& bytes);
    void end_part(const SamplePtr& sample);
    void give_up(const SamplePtr& sample);
    void finish(const SamplePtr& sample);
    [[nodiscard]] std::uint32_t checksum(const Sample& sample) const;

    const SidecarParts& parts_;
    Origin& origin_;
    NodeStore& store_;
    const domain::ManifestView& manifest_;
    Limits limits_;
    Events events_;
    std::unordered_map<SampleIndex, SamplePtr> samples_;  // samples that have not ended
    std::vector<SamplePtr> waiting_;  // samples with parts not yet requested, in order of start()
    std::uint32_t running_ = 0;       // running parts of all samples
    LoopTasks tasks_;
};

}  // namespace stoker::sidecar
