#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"
#include "common/domain/listing.h"
#include "common/domain/tar_format.h"

// The samples of tar shards (WebDataset): consecutive files with one stem are a sample. Its bytes are those
// of the shard from its first member's first header to the end of its last member's data (ADR 0022). Pure.
namespace stoker::domain {

inline constexpr std::size_t kTarMembersMax = 1024;  // of one sample
inline constexpr std::size_t kTarExtensionBytesMax = 255;
inline constexpr std::string_view kTarKeyMember = "__key__";  // in the client's dictionary

// The name of a member, "train/0001.seg.png": stem "train/0001", extension "seg.png". The views point into
// the name.
struct TarMemberName {
    std::string_view stem;  // folder and basename up to the basename's first dot; both not empty
    std::string_view extension;  // what follows the dot
};

// nullopt: no member of a sample: its basename has no dot or begins with one, or the first folder (without
// folders: the file) is called "__...__", as WebDataset's metadata is.
std::optional<TarMemberName> split_member_name(std::string_view name);

// One member in the bytes of its sample.
struct TarSampleMember {
    std::string extension;  // ASCII letters in lower case, as WebDataset has them
    std::uint64_t offset = 0;
    std::uint64_t size_bytes = 0;

    bool operator==(const TarSampleMember&) const = default;
};

struct TarSample {
    std::string stem;  // as the archive has it
    std::vector<TarSampleMember> members;

    bool operator==(const TarSample&) const = default;
};

// The members of one sample, from its bytes. kCorruption, kInvalidArgument: as TarWalk::take(), or
// `bytes` are not one sample.
Result<TarSample> parse_tar_sample(std::span<const std::byte> bytes);

// Whether the object is a tar shard: its key ends in ".tar".
bool is_tar_shard(std::string_view key);

// Whether the object is a compressed tar shard, whose members cannot be read one by one.
bool is_compressed_shard(std::string_view key);

// Finds the samples of one shard, by windows: parts of it that have one or several headers. While samples
// are small, a window has the data between the headers, too, because one request costs more than these
// bytes. Usage as TarWalk. Not thread-safe.
class TarIndex {
public:
    // Samples are small if they have at most this many bytes on average.
    static constexpr std::uint64_t kReadOverBytes = std::uint64_t{64} << 10U;
    static constexpr std::uint64_t kLongWindowBytes = std::uint64_t{256} << 10U;
    static constexpr std::uint64_t kShortWindowBytes = std::uint64_t{8} << 10U;

    // kInvalidArgument: the key has 64 KiB or more.
    static Result<TarIndex> of(ListedObject shard);

    // The next window; nullopt: the end.
    [[nodiscard]] std::optional<TarRange> next() const;

    // Takes the bytes of next(), and adds to `samples` those that are complete: their keys (the shard's, '/',
    // the stem without a leading "./"), sizes, and places as ETags (range_place.h). Messages name the
    // shard. kCorruption: damaged or cut. kInvalidArgument: a sparse file, or two members of a sample have
    // one extension; also the errors of Listing::add().
    Status take(std::span<const std::byte> window, Listing& samples);

private:
    explicit TarIndex(ListedObject shard)
        : shard_(std::move(shard)),
          walk_(shard_.size_bytes) {}

    Status take_all(std::span<const std::byte> window, Listing& samples);
    [[nodiscard]] Result<std::string> new_extension(std::string_view text) const;
    Status add_member(const TarMember& member, Listing& samples);
    Status end_sample(Listing& samples);

    ListedObject shard_;
    TarWalk walk_;
    std::uint64_t samples_ = 0;  // found so far
    // The sample that is not complete yet; without extensions: none.
    std::string stem_;
    std::vector<std::string> extensions_;
    std::uint64_t begin_ = 0;
    std::uint64_t end_ = 0;
};

}  // namespace stoker::domain
