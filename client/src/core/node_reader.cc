#include "client/src/core/node_reader.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/domain/residency_table.h"
#include "common/domain/residency_word.h"
#include "common/domain/segment_format.h"

namespace stoker::client {

namespace {

constexpr int kMovedSampleRetries = 4;  // compaction may move a sample after we loaded its word

std::string file_of(const NodeReaderOptions& options, const char* kind) {
    return fmt::format("{}/{}.{}", options.directory, kind, domain::to_string(options.revision));
}

// Identifies a sample's residency word. Never 0, which means "not checked". Two different words
// of a sample have the same fingerprint with probability 2^-31.
std::uint32_t fingerprint(std::uint64_t word) {
    return static_cast<std::uint32_t>((word * 0x9E3779B97F4A7C15ULL) >> 32U) | 1U;
}

// File name of a segment, relative to the node directory's `segments` folder.
std::string segment_file_name(domain::SegmentSeq seq) {
    return fmt::format("{}.seg", seq.value());
}

// Uses pread: a file shorter than its header must be an error, not SIGBUS.
Result<domain::SegmentHeader> read_header(int fd, const std::string& name) {
    std::array<std::byte, domain::kSegmentHeaderBytes> raw{};
    const ssize_t got = ::pread(fd, raw.data(), raw.size(), 0);
    if (got < 0) {
        return fail(system_error(errno, fmt::format("reading {}", name)));
    }
    return domain::decode_segment_header(std::span{raw}.first(static_cast<std::size_t>(got)));
}

bool is_exhausted(const Result<std::shared_ptr<SegmentMap>>& opened) {
    return !opened && opened.error().code == ErrorCode::kResourceExhausted;
}

}  // namespace

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
        return fail(
            ErrorCode::kCorruption,
            fmt::format("the header of {} names another segment or revision", name));
    }
    const auto file_bytes = static_cast<std::uint64_t>(status.st_size);
    const std::uint64_t length = std::clamp(
        header.capacity_bytes, file_bytes, std::max(file_bytes, domain::kSegmentBytesMax));
    STOKER_TRY(MappedFile file, MappedFile::map(fd.get(), length, name));
    return std::shared_ptr<SegmentMap>{new SegmentMap{std::move(file), seq, file_bytes}};
}

std::optional<std::span<const std::byte>> SegmentMap::slice(
    int segments_fd, std::uint64_t offset, std::uint64_t length_bytes) const {
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

NodeReader::NodeReader(NodeReaderOptions options, std::shared_ptr<const Catalog> catalog)
    : options_(std::move(options)),
      catalog_(std::move(catalog)),
      verified_(manifest().sample_count()) {}

Result<std::unique_ptr<NodeReader>> NodeReader::open(NodeReaderOptions options) {
    const std::string path = file_of(options, "manifest");
    install_bus_guard();
    STOKER_TRY(auto catalog, options.guest ? Catalog::open_copy(path) : Catalog::open(path));
    if (catalog->manifest().revision() != options.revision) {
        return fail(ErrorCode::kCorruption, fmt::format("{} holds another revision", path));
    }
    std::unique_ptr<NodeReader> reader{new NodeReader{std::move(options), std::move(catalog)}};
    if (auto mapped = reader->refresh(); !mapped && mapped.error().code != ErrorCode::kNotFound) {
        return fail(std::move(mapped).error());
    }
    return reader;
}

Status NodeReader::share_checks(int file, std::uint64_t offset_bytes) {
    STOKER_TRY(verified_, SharedWords::of_file(file, offset_bytes, manifest().sample_count()));
    return {};
}

Status NodeReader::refresh() {
    const std::string path = file_of(options_, "residency");
    install_bus_guard();
    if (!residency_file_.bytes().empty() && !residency_lost_ &&
        residency_file_.is_same_file_as(path)) {
        return {};
    }
    STOKER_TRY(MappedFile file, MappedFile::open(path));
    std::array<std::byte, domain::kResidencyHeaderBytes> raw{};
    if (file.bytes().size() < raw.size() ||
        !copy_guarded(file.bytes().first(raw.size()), raw, raw.size())) {
        return fail(ErrorCode::kCorruption, fmt::format("{} was truncated", path));
    }
    const auto header = domain::decode_residency_header(raw);
    if (!header) {
        return fail(Error{header.error()}.prefixed(path));
    }
    const std::uint64_t samples = manifest().sample_count();
    if (header->revision != options_.revision || header->sample_count != samples ||
        file.bytes().size() < domain::residency_file_bytes(samples)) {
        return fail(ErrorCode::kCorruption, fmt::format("{} belongs to another manifest", path));
    }
    if (!segments_fd_.valid()) {
        const std::string folder = options_.directory + "/segments";
        UniqueFd fd{::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
        if (!fd.valid()) {
            return fail(system_error(errno, fmt::format("opening {}", folder)));
        }
        segments_fd_ = std::move(fd);
    }
    residency_file_ = std::move(file);
    residency_lost_ = false;
    return {};
}

std::uint64_t NodeReader::residency_word(domain::SampleId id) const {
    const auto bytes = residency_file_.bytes();
    if (bytes.empty() || residency_lost_) {
        return 0;
    }
    const auto* words =
        reinterpret_cast<const std::uint64_t*>(bytes.data() + domain::kResidencyHeaderBytes);
    const auto word = load_guarded(words + id.value());
    residency_lost_ = !word.has_value();
    return word.value_or(0);
}

std::optional<SampleView> NodeReader::read(domain::SampleId id) {
    auto where = locate(id);
    return where ? check(id, *std::move(where)) : std::nullopt;
}

std::optional<Location> NodeReader::locate(domain::SampleId id) {
    const std::uint64_t length = domain::kRecordHeaderBytes + manifest().size_bytes(id);
    ++reads_;
    for (int attempt = 0; attempt < kMovedSampleRetries; ++attempt) {
        const std::uint64_t word = residency_word(id);
        const auto where = domain::unpack_residency(word);
        if (!where) {
            break;
        }
        if (auto map = segment(where->segment)) {
            const auto record = map->slice(segments_fd_.get(), where->record_offset, length);
            if (record) {
                return Location{word, *record, std::move(map)};
            }
        }
        if (residency_word(id) == word) {
            break;
        }
    }
    return std::nullopt;
}

// The map of a segment. nullptr: no such file now, or no memory for one more map.
std::shared_ptr<const SegmentMap> NodeReader::segment(domain::SegmentSeq seq) {
    auto found = places_.find(seq.value());
    if (found == places_.end()) {
        if (!segments_.empty() && segments_.size() >= options_.segment_maps_max) {
            retire_one();
        }
        auto opened = SegmentMap::open(segments_fd_.get(), seq, options_.revision);
        // The process may have reached its limit of maps, which other parts of it also use: unmap
        // up to half of the segments to make room.
        for (std::size_t room = segments_.size() / 2; room > 0 && is_exhausted(opened); --room) {
            retire_one();
            opened = SegmentMap::open(segments_fd_.get(), seq, options_.revision);
        }
        if (!opened) {
            return nullptr;
        }
        found = places_.emplace(seq.value(), segments_.size()).first;
        segments_.push_back({*std::move(opened), 0});
    }
    Entry& entry = segments_[found->second];
    entry.last_used = reads_;
    return entry.map;
}

// Unmaps the least recently used one among a few segments; the next call looks at the next few.
// Searching all segments would cost more than mapping one again.
void NodeReader::retire_one() {
    constexpr std::size_t kLooks = 8;
    std::size_t oldest = victim_cursor_ % segments_.size();
    for (std::size_t looks = std::min(kLooks, segments_.size()); looks > 0; --looks) {
        const std::size_t place = victim_cursor_++ % segments_.size();
        if (segments_[place].last_used < segments_[oldest].last_used) {
            oldest = place;
        }
    }
    retire(oldest);
}

// Removes the map at `place`; the last entry moves there.
void NodeReader::retire(std::size_t place) {
    places_.erase(segments_[place].map->seq().value());
    if (place + 1 < segments_.size()) {
        segments_[place] = std::move(segments_.back());
        places_[segments_[place].map->seq().value()] = place;
    }
    segments_.pop_back();
}

void NodeReader::retire_unlinked(std::size_t checks) {
    for (; checks > 0 && !segments_.empty(); --checks) {
        unlinked_cursor_ %= segments_.size();
        if (segments_[unlinked_cursor_].map->is_linked(segments_fd_.get())) {
            ++unlinked_cursor_;
        } else {
            retire(unlinked_cursor_);
        }
    }
}

bool NodeReader::is_checked(domain::SampleId id, const Location& where) const {
    return options_.verify != Verify::kAlways && !options_.guest &&
           verified_[id.value()].load(std::memory_order_relaxed) == fingerprint(where.word);
}

std::optional<SampleView> NodeReader::check(domain::SampleId id, Location where) {
    const domain::SegmentSeq seq = where.segment->seq();
    SampleView view{
        where.record.subspan(domain::kRecordHeaderBytes), std::move(where.segment), seq};
    if (!is_checked(id, where)) {
        if (!verify(id, where.record, view)) {
            corrupt_.fetch_add(1, std::memory_order_relaxed);
            return std::nullopt;
        }
        verified_[id.value()].store(fingerprint(where.word), std::memory_order_relaxed);
    }
    hits_.fetch_add(1, std::memory_order_relaxed);
    hit_bytes_.fetch_add(view.bytes.size(), std::memory_order_relaxed);
    return view;
}

// Compares the record with its checksums, and with the view's id and size. For a guest, first
// replaces the view by a private copy and checks the copy, because no other process can change it.
bool NodeReader::verify(
    domain::SampleId id, std::span<const std::byte> record, SampleView& view) const {
    std::array<std::byte, domain::kRecordHeaderBytes> head{};
    std::span<std::byte> to = head;
    if (options_.guest) {
        const auto copy = std::make_shared_for_overwrite<std::byte[]>(record.size());
        to = {copy.get(), record.size()};
        view = {to.subspan(head.size()), copy, view.seq};
    }
    if (!MappedFile::is_readable(record)) {
        return false;
    }
    const bool is_trusted = options_.verify == Verify::kNever;
    const auto crc = copy_guarded(record, to, is_trusted ? record.size() : head.size());
    const auto header = crc ? domain::decode_record_header(to, view.seq) : std::nullopt;
    return header && header->sample == id && header->payload_bytes == view.bytes.size() &&
           (is_trusted || header->payload_crc32c == crc);
}

NodeReaderCounts NodeReader::counts() const {
    return {
        hits_.load(std::memory_order_relaxed),
        hit_bytes_.load(std::memory_order_relaxed),
        corrupt_.load(std::memory_order_relaxed)};
}

}  // namespace stoker::client
