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

// The samples of one tar shard. take() also fails with kInvalidArgument for a sparse file, and if two members of
// a sample have one extension. A sample's name in the shard is its stem without a leading "./".
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
    // The sample that is not complete yet; without extensions: none.
    std::string stem_;
    std::vector<std::string> extensions_;
    std::uint64_t begin_ = 0;
    std::uint64_t end_ = 0;
};

}  // namespace stoker::domain
