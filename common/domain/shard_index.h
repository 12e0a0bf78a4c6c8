#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "common/base/result.h"
#include "common/domain/byte_range.h"
#include "common/domain/listing.h"

// Finds the samples of shards: objects whose byte ranges are samples. Pure.
namespace stoker::domain {

// A sample in its shard.
struct ShardSample {
    std::string name;  // unique in the shard
    std::uint64_t offset = 0;
    std::uint64_t size_bytes = 0;
    std::optional<std::uint32_t> crc32c{};  // checksum of its bytes, if the shard stores one
};

// Adds a sample: key (the shard's key, '/', the name), size, and place as ETag (range_place.h). It
// must end in the shard, which has at least one byte; an empty one may begin at the shard's end.
Status add_sample(const ListedObject& shard, const ShardSample& sample, Listing& samples);

// The name of a shard's sample `number`: nine digits, so that keys sort by number. The 4 GiB of a listing's keys
// and ETags have room for fewer samples than these digits can name.
std::string number_name(std::uint64_t number);

// The least bytes that this many samples of the shard, named by their numbers, take in a Listing.
// Does not overflow for counts that check_sample_count() accepts.
std::uint64_t listed_bytes(const ListedObject& shard, std::uint64_t count);

// Fails if this many samples of the shard, named by their numbers, certainly exceed the 4 GiB of a
// listing's keys and ETags; call it before any of the samples is added.
Status check_sample_count(const ListedObject& shard, std::uint64_t count);

// Finds a shard's samples by windows: byte ranges of the shard or of an object beside it.
//
//   while (const auto window = index.next()) {
//       STOKER_TRY_VOID(index.take(read(*window), samples));
//   }
//
// A subclass names the bytes that it needs next, one header or table. While samples are small, a
// window also contains the data between headers, because another request would cost more than these
// bytes; such windows grow while they follow one another. An index that needs no bytes has empty
// windows: each take() then adds some thousand samples. Not thread-safe.
class ShardIndex {
public:
    // Samples of up to this many bytes, on average, are read together with the headers.
    static constexpr std::uint64_t kReadOverBytes = std::uint64_t{64} << 10U;
    static constexpr std::uint64_t kLongWindowBytes = std::uint64_t{256}
                                                      << 10U;  // length of the first such window
    static constexpr std::uint64_t kLongestWindowBytes = std::uint64_t{8} << 20U;
    static constexpr std::uint64_t kShortWindowBytes = std::uint64_t{8} << 10U;

    virtual ~ShardIndex() = default;

    // The next window to read; nullopt: the end. At most `longest` bytes, but kLongWindowBytes, or
    // one header if longer, are always allowed. Empty: take() needs no bytes.
    [[nodiscard]] std::optional<ByteRange> next(std::uint64_t longest = kLongestWindowBytes) const;

    // Takes the bytes of next(), and adds to `samples` those that are complete. Messages name the object.
    // kCorruption: damaged or cut. kInvalidArgument: a content that cannot be served; also the errors of
    // Listing::add(). After an error the index must not be used.
    Status take(std::span<const std::byte> window, Listing& samples);

protected:
    // `object`: the object to which the windows of next() belong.
    explicit ShardIndex(ListedObject object)
        : object_(std::move(object)) {}

    ShardIndex(const ShardIndex&) = default;
    ShardIndex(ShardIndex&&) = default;
    ShardIndex& operator=(const ShardIndex&) = default;
    ShardIndex& operator=(ShardIndex&&) = default;

    // The byte range that step() needs, inside the object; empty: it needs none; nullopt: the end.
    [[nodiscard]] virtual std::optional<ByteRange> wanted() const = 0;

    // Takes the bytes of wanted().
    virtual Status step(std::span<const std::byte> bytes, Listing& samples) = 0;

    // Called when everything has been read: adds the samples that step() held back.
    virtual Status end(Listing& samples) {
        static_cast<void>(samples);
        return {};
    }

    [[nodiscard]] const ListedObject& object() const { return object_; }

private:
    Status take_all(std::span<const std::byte> window, Listing& samples);
    [[nodiscard]] bool reads_over(const ByteRange& header) const;

    ListedObject object_;
    std::uint64_t long_window_bytes_ = kLongWindowBytes;
    std::uint64_t sample_count_ = 0;  // samples found so far
};

}  // namespace stoker::domain
