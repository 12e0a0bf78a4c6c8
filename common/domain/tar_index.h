#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/result.h"
#include "common/domain/shard_index.h"
#include "common/domain/tar_format.h"

// The samples of tar shards (WebDataset): consecutive files with one stem are a sample. Its bytes
// are the shard's from its first member's first header to its last data (ADR 0022). Pure.
namespace stoker::domain {

inline constexpr std::size_t kTarMembersMax = 1024;  // members of one sample
inline constexpr std::size_t kTarExtensionBytesMax = 255;
inline constexpr std::string_view kTarKeyMember = "__key__";  // of the client's dictionary

// The name of a member, split: "train/0001.seg.png" has the stem "train/0001" and the extension
// "seg.png". The views point into the name.
struct TarMemberName {
    std::string_view stem;  // folder and basename up to the basename's first dot; both not empty
    std::string_view extension;  // the text after that dot
};

// nullopt: the member is of no sample: its basename has no dot or begins with one, or its first
// folder (or the file) is called "__...__", as WebDataset's metadata is.
std::optional<TarMemberName> split_member_name(std::string_view name);

// One member in the bytes of its sample.
struct TarSampleMember {
    std::string extension;  // ASCII letters in lower case, as in WebDataset
    std::uint64_t offset = 0;
    std::uint64_t size_bytes = 0;

    bool operator==(const TarSampleMember&) const = default;
};

struct TarSample {
    std::string stem;  // as written in the archive
    std::vector<TarSampleMember> members;

    bool operator==(const TarSample&) const = default;
};

// Finds the members of one sample in its bytes. kCorruption, kInvalidArgument: as TarWalk::take(),
// or `bytes` are not exactly one sample.
Result<TarSample> parse_tar_sample(std::span<const std::byte> bytes);

// The samples of a tar shard. take() fails with kInvalidArgument, too: a sparse file, or two
// members of a sample with one extension. A sample's name is its stem without a leading "./".
class TarIndex final : public ShardIndex {
public:
    explicit TarIndex(ListedObject shard)
        : ShardIndex(std::move(shard)),
          walk_(object().size_bytes) {}

private:
    [[nodiscard]] std::optional<ByteRange> wanted() const override { return walk_.next(); }

    Status step(std::span<const std::byte> bytes, Listing& samples) override;
    Status end(Listing& samples) override;
    [[nodiscard]] Result<std::string> new_extension(std::string_view text) const;
    Status add_member(const TarMember& member, Listing& samples);

    TarWalk walk_;
    // The sample whose members are still being read; without extensions: none.
    std::string stem_;
    std::vector<std::string> extensions_;
    std::uint64_t begin_ = 0;
    std::uint64_t end_ = 0;
};

}  // namespace stoker::domain
