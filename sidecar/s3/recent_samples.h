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

// Copies of samples that the node does not keep and that a client reads in several ranges, such as a
// Parquet file's footer and then its columns. Without them each range would fetch the whole sample.
namespace stoker::s3 {

inline constexpr std::uint64_t kRecentBytesMax = std::uint64_t{64} << 20U;  // of one dataset
inline constexpr Duration kRecentAge = std::chrono::seconds{30};  // since the sample was fetched

// Thread-safe. Above `bytes_max` the oldest copies go first; a larger sample is not kept.
class RecentSamples {
public:
    explicit RecentSamples(std::uint64_t bytes_max = kRecentBytesMax)
        : bytes_max_(bytes_max) {}

    // Copies the payload, unless a copy is there.
    void keep(domain::SampleId id, std::span<const std::byte> payload, TimePoint now);

    [[nodiscard]] std::optional<client::SampleView> find(domain::SampleId id, TimePoint now);

    void drop_old(TimePoint now);

private:
    struct Entry {
        domain::SampleId id;
        TimePoint fetched;
        std::shared_ptr<const std::vector<std::byte>> payload;
    };

    struct Entries {
        std::list<Entry> oldest_first;
        std::uint64_t bytes = 0;
    };

    static void drop_first(Entries& entries);
    static void drop_old(Entries& entries, TimePoint now);

    std::uint64_t bytes_max_;
    Guarded<Entries> entries_;
};

}  // namespace stoker::s3
