#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "common/base/result.h"
#include "common/domain/byte_range.h"

// Reads the headers of a tar file: ustar, GNU long names, pax, and the older format of Unix 7.
// Checks every number; skips what Python's tarfile skips. Pure.
namespace stoker::domain {

inline constexpr std::size_t kTarBlockBytes = 512;
inline constexpr std::uint64_t kTarExtraBytesMax = std::uint64_t{1}
                                                   << 20U;  // longest name or pax header

struct TarMember {
    // kOther: a folder, a device, or a type that this reader does not know.
    enum class Kind : std::uint8_t { kFile, kLink, kSparse, kOther };

    std::string name;  // as written in the archive
    Kind kind = Kind::kOther;
    std::uint64_t begin = 0;       // offset of its first header, before long names and pax records
    std::uint64_t data = 0;        // offset of the member's data
    std::uint64_t size_bytes = 0;  // size of the data

    [[nodiscard]] std::uint64_t end() const { return data + size_bytes; }
};

// Walks from header to header. The caller passes the bytes of the range next() to take():
//
//   TarWalk walk{file_bytes};
//   while (const auto wanted = walk.next()) {
//       STOKER_TRY(const auto member, walk.take(read(*wanted)));
//   }
//
// The walk ends at a block of zeros, or at the end of the file after a member's data; the padding
// of that data may be missing. Not thread-safe.
class TarWalk {
public:
    // `bytes`: length of the file.
    explicit TarWalk(std::uint64_t bytes)
        : bytes_(bytes) {}

    // The byte range to pass to take() next; never empty. nullopt: the end.
    [[nodiscard]] std::optional<ByteRange> next() const;

    // `bytes` are those of next(). Returns the member whose header they complete, if any.
    // kCorruption: damaged, cut, or not a tar file. kInvalidArgument: a pax header for all members
    // sets their path or size. After an error the walk must not be continued.
    Result<std::optional<TarMember>> take(std::span<const std::byte> bytes);

private:
    // Values from pax and GNU headers that replace fields of the next member's own header.
    struct Overrides {
        std::optional<std::string> name;
        std::optional<std::uint64_t> size_bytes;
        bool is_sparse = false;
    };

    // A GNU or pax header whose body comes next.
    struct Extra {
        char type = 'x';
        std::uint64_t size_bytes = 0;
    };

    struct Entry {
        char type = '0';
        std::string name;
        std::uint64_t size_bytes = 0;
    };

    [[nodiscard]] tl::unexpected<Error> corrupt(std::string_view what) const;
    static std::optional<Entry> read_entry(std::span<const char, kTarBlockBytes> block);
    static bool read_pax(std::string_view text, Overrides& next);
    Result<std::optional<TarMember>> take_header(std::span<const char, kTarBlockBytes> block);
    Result<std::optional<TarMember>> take_extra_header(const Entry& entry);
    Result<std::optional<TarMember>> take_member(Entry entry);
    Status take_extra(std::string_view body);
    void skip(std::uint64_t data_bytes);

    std::uint64_t bytes_;
    std::uint64_t at_ = 0;
    bool has_ended_ = false;
    std::optional<std::uint64_t> begin_;  // offset of the next member's first header
    std::optional<Extra> extra_;
    Overrides next_;
};

}  // namespace stoker::domain
