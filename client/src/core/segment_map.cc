#include "client/src/core/segment_map.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/unique_fd.h"

namespace stoker::client {

namespace {

// Uses pread: a file shorter than its header must be an error, not SIGBUS.
Result<domain::SegmentHeader> read_header(int fd, const std::string& name) {
    std::array<std::byte, domain::kSegmentHeaderBytes> raw{};
    const ssize_t got = ::pread(fd, raw.data(), raw.size(), 0);
    if (got < 0) {
        return fail(system_error(errno, fmt::format("reading {}", name)));
    }
    return domain::decode_segment_header(std::span{raw}.first(static_cast<std::size_t>(got)));
}

}  // namespace

std::string segment_file_name(domain::SegmentSeq seq) {
    return fmt::format("{}.seg", seq.value());
}

Result<std::shared_ptr<SegmentMap>> SegmentMap::open(
    int segments_fd, domain::SegmentSeq seq, domain::RevisionId revision) {
    const std::string name = segment_file_name(seq);
    const UniqueFd fd{::openat(segments_fd, name.c_str(), O_RDONLY | O_CLOEXEC)};

    struct stat status {};

    if (!fd.valid() || ::fstat(fd.get(), &status) != 0) {
        return fail(system_error(errno, fmt::format("opening {}", name)));
    }
    STOKER_TRY(const domain::SegmentHeader header, read_header(fd.get(), name));
    if (header.seq != seq || header.revision != revision) {
        return fail(ErrorCode::kCorruption, fmt::format("{} is a segment of something else", name));
    }
    const auto file_bytes = static_cast<std::uint64_t>(status.st_size);
    const std::uint64_t length = std::clamp(
        header.capacity_bytes, file_bytes, std::max(file_bytes, domain::kSegmentBytesMax));
    STOKER_TRY(MappedFile file, MappedFile::map(fd.get(), length, name));
    return std::shared_ptr<SegmentMap>{new SegmentMap{std::move(file), seq, file_bytes}};
}

std::optional<std::span<const std::byte>> SegmentMap::slice(
    int segments_fd, std::uint64_t offset, std::uint64_t length_bytes) {
    const auto mapped = file_.bytes();
    if (offset > mapped.size() || length_bytes > mapped.size() - offset) {
        return std::nullopt;
    }
    const std::uint64_t end = offset + length_bytes;
    if (end > file_bytes_.load(std::memory_order_relaxed)) {
        struct stat status {};

        if (::fstatat(segments_fd, segment_file_name(seq_).c_str(), &status, 0) != 0 ||
            end > static_cast<std::uint64_t>(status.st_size)) {
            return std::nullopt;
        }
        file_bytes_.store(static_cast<std::uint64_t>(status.st_size), std::memory_order_relaxed);
    }
    return mapped.subspan(offset, length_bytes);
}

bool SegmentMap::is_linked(int segments_fd) const {
    return ::faccessat(segments_fd, segment_file_name(seq_).c_str(), F_OK, 0) == 0;
}

}  // namespace stoker::client
