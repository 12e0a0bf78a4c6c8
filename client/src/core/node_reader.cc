#include "client/src/core/node_reader.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include "client/src/core/bus_guard.h"
#include "common/base/crc32c.h"
#include "common/domain/residency_table.h"
#include "common/domain/residency_word.h"
#include "common/domain/segment_format.h"

namespace stoker::client {

namespace {

constexpr int kMovedSampleRetries = 4;  // compaction may move a sample after we loaded its word

std::string file_of(const NodeReaderOptions& options, const char* kind) {
    return fmt::format("{}/{}.{}", options.directory, kind, domain::to_string(options.revision));
}

// Never 0, which means "not checked". Two words of one sample collide with probability 2^-32.
std::uint32_t fingerprint(std::uint64_t word) {
    return static_cast<std::uint32_t>((word * 0x9E3779B97F4A7C15ULL) >> 32U) | 1U;
}

// nullopt: not the record that the word describes.
std::optional<domain::RecordHeader> header_of(
    std::span<const std::byte> record,
    domain::SampleId id,
    std::uint64_t payload_bytes,
    const Location& where) {
    auto header = domain::decode_record_header(record, where.pin->seq());
    if (header && (header->sample != id || header->payload_bytes != payload_bytes)) {
        header.reset();
    }
    return header;
}

}  // namespace

NodeReader::NodeReader(NodeReaderOptions options, std::shared_ptr<const Catalog> catalog)
    : options_(std::move(options)),
      catalog_(std::move(catalog)),
      verified_(std::make_unique<std::atomic<std::uint32_t>[]>(manifest().sample_count())) {}

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
        !read_guarded(file.bytes().first(raw.size()), raw.data())) {
        return fail(ErrorCode::kCorruption, fmt::format("{} was cut", path));
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
        Location location{word, {}, nullptr};
        if (SegmentMap* map = segment(where->segment, location.pin); map != nullptr) {
            const auto record = map->slice(segments_fd_.get(), where->record_offset, length);
            if (record) {
                location.record = *record;
                return location;
            }
        }
        if (residency_word(id) == word) {
            break;
        }
    }
    ++counts_.misses;
    return std::nullopt;
}

SegmentMap* NodeReader::segment(domain::SegmentSeq seq, std::shared_ptr<const SegmentMap>& pin) {
    auto found = segments_.find(seq.value());
    if (found == segments_.end()) {
        auto opened = SegmentMap::open(segments_fd_.get(), seq, options_.revision);
        if (!opened) {
            return nullptr;
        }
        if (segments_.size() >= options_.segment_maps_max) {
            retire_least_recently_used();
        }
        ++counts_.segments_mapped;
        found = segments_.emplace(seq.value(), Entry{*std::move(opened), 0}).first;
    }
    found->second.last_used = reads_;
    pin = found->second.map;
    return found->second.map.get();
}

void NodeReader::retire_least_recently_used() {
    const auto oldest = std::ranges::min_element(
        segments_, {}, [](const auto& entry) { return entry.second.last_used; });
    if (oldest != segments_.end()) {
        segments_.erase(oldest);
        ++counts_.segments_retired;
    }
}

void NodeReader::retire_unlinked(std::size_t checks) {
    for (; checks > 0 && !segments_.empty(); --checks) {
        if (retire_order_.empty()) {
            std::ranges::transform(segments_, std::back_inserter(retire_order_), [](const auto& e) {
                return e.first;
            });
        }
        const auto entry = segments_.find(retire_order_.back());
        retire_order_.pop_back();
        if (entry != segments_.end() && !entry->second.map->is_linked(segments_fd_.get())) {
            segments_.erase(entry);
            ++counts_.segments_retired;
        }
    }
}

bool NodeReader::is_checked(domain::SampleId id, const Location& where) const {
    return options_.verify != Verify::kAlways && !options_.guest &&
           verified_[id.value()].load(std::memory_order_relaxed) == fingerprint(where.word);
}

std::optional<SampleView> NodeReader::check(domain::SampleId id, Location where) {
    if (options_.guest) {
        return copy(id, where);
    }
    if (!is_checked(id, where)) {
        if (!is_intact(id, where)) {
            corrupt_.fetch_add(1, std::memory_order_relaxed);
            return std::nullopt;
        }
        verified_[id.value()].store(fingerprint(where.word), std::memory_order_relaxed);
    }
    const auto payload = where.record.subspan(domain::kRecordHeaderBytes);
    hits_.fetch_add(1, std::memory_order_relaxed);
    hit_bytes_.fetch_add(payload.size(), std::memory_order_relaxed);
    const domain::SegmentSeq seq = where.pin->seq();
    return SampleView{payload, std::move(where.pin), seq};
}

bool NodeReader::is_intact(domain::SampleId id, const Location& where) const {
    std::array<std::byte, domain::kRecordHeaderBytes> raw{};
    if (!MappedFile::is_readable(where.record) ||
        !read_guarded(where.record.first(raw.size()), raw.data())) {
        return false;
    }
    const auto payload = where.record.subspan(raw.size());
    const auto header = header_of(raw, id, payload.size(), where);
    return header &&
           (options_.verify == Verify::kNever || crc32c_guarded(payload) == header->payload_crc32c);
}

// Verifies the copy that it returns, because no other process can change it.
std::optional<SampleView> NodeReader::copy(domain::SampleId id, const Location& where) {
    const auto size = where.record.size();
    const auto bytes = std::make_shared_for_overwrite<std::byte[]>(size);
    const std::span<const std::byte> record{bytes.get(), size};
    const auto payload = record.subspan(domain::kRecordHeaderBytes);
    bool intact = MappedFile::is_readable(where.record) && read_guarded(where.record, bytes.get());
    if (intact) {
        const auto header = header_of(record, id, payload.size(), where);
        intact = header &&
                 (options_.verify == Verify::kNever || crc32c(payload) == header->payload_crc32c);
    }
    if (!intact) {
        corrupt_.fetch_add(1, std::memory_order_relaxed);
        return std::nullopt;
    }
    hits_.fetch_add(1, std::memory_order_relaxed);
    hit_bytes_.fetch_add(payload.size(), std::memory_order_relaxed);
    return SampleView{payload, bytes, where.pin->seq()};
}

NodeReaderCounts NodeReader::counts() const {
    NodeReaderCounts counts = counts_;
    counts.hits = hits_.load(std::memory_order_relaxed);
    counts.hit_bytes = hit_bytes_.load(std::memory_order_relaxed);
    counts.corrupt = corrupt_.load(std::memory_order_relaxed);
    return counts;
}

}  // namespace stoker::client
