#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "common/base/clock.h"
#include "common/base/guarded.h"
#include "sidecar/attached/cached_dataset.h"
#include "sidecar/attached/fetch_pool.h"
#include "sidecar/attached/object_parts.h"
#include "sidecar/origin/origin.h"

namespace stoker::files {

// Reads ranges of a dataset's objects: from the node directory, else through the sidecar, else at
// the origin. A sample that is not on the node is fetched once for all its readers and held until
// it was read or unread for kHeldAge, because the kernel reads a file in parts. Thread-safe.
class SampleReads {
public:
    static constexpr Duration kHeldAge = std::chrono::seconds{30};
    // Limit of held samples that are mapped: each one pins its segment, and so disk space.
    static constexpr std::uint64_t kMappedBytesMax = std::uint64_t{256} << 20U;
    // A larger object is read at the origin in parts of this size.
    static constexpr std::uint64_t kOriginPartBytes = std::uint64_t{8} << 20U;

    // `bytes`: exactly the wanted ones, valid during the call; nullopt: no source delivered them.
    using OnBytes = std::function<void(std::optional<std::span<const std::byte>> bytes)>;

    // All arguments must outlive this object, and `pool` must end before it is destroyed.
    // `copied_bytes_max`: limit of held copies: a guest's samples, and samples from the origin. The
    // oldest ones of a kind are dropped first; its newest one always stays.
    SampleReads(
        attached::CachedDataset& dataset,
        std::shared_ptr<attached::DatasetFiles> files,
        sidecar::Origin& origin,
        attached::FetchPool& pool,
        const Clock& clock,
        std::uint64_t copied_bytes_max);

    // Calls `on_bytes` once, unless stop() comes first: on this thread if the bytes are available
    // at once, otherwise on one of the pool's. Delivers nothing for an object that contradicts the
    // manifest, or that has several blocks below kBlockBytesMin.
    void read(
        const domain::StoredObject& object,
        std::uint64_t offset,
        std::uint64_t length,
        OnBytes on_bytes);

    // From now on, reads that the pool has not finished stay unanswered. Any thread.
    void stop() { is_stopping_ = true; }

    // Drops samples that were not read for kHeldAge. Call it about once a second.
    void drop_old();

private:
    // A range of one sample.
    struct Wanted {
        domain::SampleId id;
        std::uint64_t offset;
        std::uint64_t length;
    };

    // Fetched bytes of a sample, from `begin` on.
    struct Held {
        domain::SampleId id;
        std::uint64_t begin;
        std::span<const std::byte> bytes;
        std::shared_ptr<const void> pin;
        bool is_copy;  // false: the bytes are mapped
        bool is_hit;   // the sample was on the node
        std::uint64_t read_bytes;
        TimePoint last_read;
    };

    struct Waiter {
        Wanted wanted;
        OnBytes on_bytes;
    };

    struct Fetching {
        domain::SampleId id;
        std::vector<Waiter> waiters;
    };

    struct Samples {
        std::list<Held> oldest_first;
        std::list<Fetching> fetching;
    };

    struct LongRead;

    void read_part(const Wanted& wanted, OnBytes on_bytes);
    void read_next(const std::shared_ptr<LongRead>& read);
    // Answers from a held sample. True: `on_bytes` was called.
    bool give_held(const Wanted& wanted, const OnBytes& on_bytes);
    void finish(domain::SampleId id, attached::FetchPool::Answer answer);
    void give_from_origin(const Waiter& waiter);
    void count(const Wanted& wanted, bool is_hit);
    void hold(Held held);
    // Bytes of memory that a fetch of the sample takes at most.
    [[nodiscard]] std::uint64_t memory_bytes(domain::SampleId id) const;

    attached::CachedDataset& dataset_;
    std::shared_ptr<attached::DatasetFiles> files_;
    sidecar::Origin& origin_;
    attached::FetchPool& pool_;
    const Clock& clock_;
    std::uint64_t copied_bytes_max_;
    std::atomic<bool> is_stopping_{false};
    Guarded<Samples> samples_;
};

}  // namespace stoker::files
