#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_map>

#include "common/base/bytes.h"
#include "common/base/strong.h"
#include "sidecar/origin/s3_request.h"

// Chooses the next request to the origin. Pure; one owner.
//
// Two lanes, so that one huge object does not block small ones. Small objects take one request
// each, in order of arrival. Large ones (over `large_object_bytes`) are cut into ranges that run in
// parallel, on a quarter of the request slots while small objects wait and on half of them
// otherwise. Each lane may hold half of `bytes_max`, but always one object, so payloads take at
// most bytes_max/2 + max(bytes_max/2, the largest object) at a time.
namespace stoker::sidecar {

using FetchId = Strong<std::uint64_t, struct FetchIdTag>;

struct SchedulerLimits {
    std::uint32_t requests_max = 64;  // at a time; at least 2
    Bytes bytes_max = mib(256);       // of objects being fetched
    Bytes large_object_bytes = mib(16);
    Bytes part_bytes = mib(8);
};

class FetchScheduler {
public:
    struct Part {
        FetchId fetch{};
        std::optional<ByteRange> range{};  // nullopt: the whole object in one request
        bool first = false;                // the object's bytes begin to count: allocate them

        bool operator==(const Part&) const = default;
    };

    explicit FetchScheduler(SchedulerLimits limits);

    // Replaces `requests_max`. Running requests above it are not ended.
    void set_requests_max(std::uint32_t requests_max);

    // Number of requests for an object of this size if none fails.
    [[nodiscard]] std::uint32_t part_count(std::uint64_t size_bytes) const;

    // Adds an object to fetch. `id` must be new.
    void add(FetchId id, std::uint64_t size_bytes);

    // The next request to send, which takes a slot; nullopt: nothing to do, or no room.
    std::optional<Part> next();

    // Frees the slot of an ended request (retries included) of an object of `size_bytes`.
    void part_ended(std::uint64_t size_bytes);

    // Removes a finished or abandoned object: its bytes no longer count, and its unstarted parts
    // never start. Running requests keep their slots until part_ended().
    void remove(FetchId id);

    [[nodiscard]] std::size_t running_requests() const { return small_.requests + large_.requests; }

    [[nodiscard]] std::size_t object_count() const { return objects_.size(); }

private:
    struct Object {
        std::uint64_t size_bytes = 0;
        std::uint64_t next_offset = 0;  // offset of the next part
        bool active = false;            // started; counts in its lane's bytes
    };

    struct Lane {
        std::deque<FetchId> waiting;  // ids of removed objects are skipped
        std::size_t objects = 0;      // started objects that are not removed
        std::size_t requests = 0;
        Bytes bytes{};
    };

    [[nodiscard]] bool is_large(std::uint64_t size_bytes) const;
    [[nodiscard]] bool has_room(const Lane& lane, std::uint64_t size_bytes) const;
    [[nodiscard]] std::size_t large_share() const;
    [[nodiscard]] std::size_t large_alone() const;
    std::optional<Part> next_small();
    std::optional<Part> next_large();
    static void activate(Lane& lane, Object& object);
    void drop_removed(Lane& lane) const;

    SchedulerLimits limits_;
    std::unordered_map<FetchId, Object> objects_;
    Lane small_;
    Lane large_;
    std::deque<FetchId> cutting_;  // large objects with unstarted parts
};

}  // namespace stoker::sidecar
