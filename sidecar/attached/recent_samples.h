#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "client/src/core/node_reader.h"
#include "common/base/clock.h"
#include "common/base/guarded.h"
#include "common/domain/ids.h"

// Copies of samples that the node does not keep and that a client reads in ranges, such as a
// Parquet file's footer and then its columns: without a copy each range would fetch the sample. A
// copy is dropped once its ranges add up to about its size, so this is not a second cache.
// no second cache.
namespace stoker::attached {

inline constexpr std::uint64_t kRecentBytesMax = std::uint64_t{64} << 20U;  // of one dataset
inline constexpr Duration kRecentAge = std::chrono::seconds{30};  // since the sample was fetched

// Thread-safe. Above `bytes_max`, drops the oldest copies; a larger sample is not copied.
class RecentSamples {
public:
    explicit RecentSamples(std::uint64_t bytes_max = kRecentBytesMax)
        : bytes_max_(bytes_max) {}

    // Copies the payload, of which `range_bytes` are sent now, unless a copy exists.
    void keep(
        domain::SampleId id,
        std::span<const std::byte> payload,
        std::uint64_t range_bytes,
        TimePoint now);

    // Returns the copy of the whole sample, of which `range_bytes` are sent now. nullopt: no copy.
    std::optional<client::SampleView> take_range(
        domain::SampleId id, std::uint64_t range_bytes, TimePoint now);

    void drop_old(TimePoint now);

private:
    struct Entry {
        domain::SampleId id;
        TimePoint fetched;
        std::uint64_t sent_bytes;
        std::shared_ptr<const std::vector<std::byte>> payload;
    };

    struct Entries {
        std::list<Entry> oldest_first;
        std::uint64_t bytes = 0;
    };

    static void drop(Entries& entries, std::list<Entry>::iterator entry);
    static void drop_old(Entries& entries, TimePoint now);

    std::uint64_t bytes_max_;
    Guarded<Entries> entries_;
};

}  // namespace stoker::attached
