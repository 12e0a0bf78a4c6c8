#include "tests/support/node_directory.h"

#include <utility>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/check.h"
#include "common/base/crc32c.h"
#include "common/domain/manifest.h"
#include "common/domain/manifest_writer.h"
#include "common/domain/residency_table.h"
#include "common/domain/segment_format.h"

namespace stoker::test {

namespace {

UniqueFd create(const std::string& path) {
    UniqueFd fd{::open(path.c_str(), O_CREAT | O_TRUNC | O_RDWR | O_CLOEXEC, 0644)};
    STOKER_CHECK(fd.valid(), path.c_str());
    return fd;
}

void write_at(const UniqueFd& fd, std::uint64_t offset, std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
        const ssize_t wrote =
            ::pwrite(fd.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
        STOKER_CHECK(wrote > 0, "writing a test file");
        bytes = bytes.subspan(static_cast<std::size_t>(wrote));
        offset += static_cast<std::uint64_t>(wrote);
    }
}

}  // namespace

NodeDirectory::NodeDirectory(std::string path, std::vector<domain::ListedObject> objects)
    : path_(std::move(path)) {
    const auto manifest = domain::encode_manifest(objects).value();
    const auto view = domain::ManifestView::open(manifest).value();
    revision_ = view.revision();
    sample_count_ = view.sample_count();
    write_at(create(fmt::format("{}/manifest.{}", path_, to_string(revision_))), 0, manifest);
    ::mkdir((path_ + "/segments").c_str(), 0755);
    make_residency_table();
}

void NodeDirectory::make_residency_table() {
    residency_ = create(fmt::format("{}/residency.{}", path_, to_string(revision_)));
    write_at(residency_, 0, domain::encode_residency_header({revision_, sample_count_}));
    const auto size = static_cast<off_t>(domain::residency_file_bytes(sample_count_));
    STOKER_CHECK(::ftruncate(residency_.get(), size) == 0, "sizing the residency table");
}

void NodeDirectory::replace_residency_table() {
    ::unlink(fmt::format("{}/residency.{}", path_, to_string(revision_)).c_str());
    make_residency_table();
}

domain::SegmentSeq NodeDirectory::start_segment(
    std::uint64_t capacity_bytes, domain::SegmentClass segment_class) {
    seq_ = domain::SegmentSeq{seq_.value() + 1};
    segment_class_ = segment_class;
    capacity_bytes_ = capacity_bytes;
    segment_ = create(segment_path(seq_));
    write_at(
        segment_,
        0,
        domain::encode_segment_header({seq_, revision_, segment_class, capacity_bytes}));
    offset_ = domain::kSegmentHeaderBytes;
    return seq_;
}

domain::Residency NodeDirectory::put(domain::SampleId sample, std::span<const std::byte> payload) {
    const std::uint64_t length = domain::record_bytes(payload.size());
    STOKER_CHECK(segment_.valid() && offset_ + length <= capacity_bytes_, "no room in the segment");
    const domain::RecordHeader header{sample, seq_, payload.size(), crc32c(payload)};
    write_at(segment_, offset_ + domain::kRecordHeaderBytes, payload);
    write_at(segment_, offset_, domain::encode_record_header(header));
    const domain::Residency where{segment_class_, seq_, offset_};
    offset_ += length;
    STOKER_CHECK(::ftruncate(segment_.get(), static_cast<off_t>(offset_)) == 0, "padding");
    set_word(sample, domain::pack_residency(where));
    return where;
}

void NodeDirectory::set_word(domain::SampleId sample, std::uint64_t word) {
    const std::uint64_t offset = domain::kResidencyHeaderBytes + sample.value() * sizeof(word);
    write_at(residency_, offset, std::as_bytes(std::span{&word, 1}));
}

void NodeDirectory::unlink_segment(domain::SegmentSeq seq) {
    STOKER_CHECK(::unlink(segment_path(seq).c_str()) == 0, "unlinking a segment");
}

std::string NodeDirectory::segment_path(domain::SegmentSeq seq) const {
    return fmt::format("{}/segments/{}.seg", path_, seq.value());
}

}  // namespace stoker::test
