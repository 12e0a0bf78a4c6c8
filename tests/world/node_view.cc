#include "tests/world/node_view.h"

#include <array>
#include <cstring>
#include <utility>

#include "common/base/crc32c.h"
#include "common/domain/node_directory.h"
#include "common/domain/residency_table.h"
#include "common/domain/residency_word.h"

namespace stoker::world {

namespace {

constexpr std::size_t kSegmentsOpenMax = 64;

}  // namespace

NodeView::NodeView(test::FaultDevice& disk, std::string data_folder, domain::RevisionId revision)
    : disk_(disk),
      folder_(std::move(data_folder)),
      revision_(revision) {
    refresh();
}

void NodeView::refresh() {
    auto table = disk_.map(
        sidecar::join_path(folder_, domain::residency_file(revision_)), sidecar::MapMode::kRead);
    if (table) {
        table_ = *std::move(table);
    }
}

sidecar::DeviceFile* NodeView::open_segment(domain::SegmentSeq seq) {
    if (const auto open = segments_.find(seq); open != segments_.end()) {
        return open->second.get();
    }
    auto file = disk_.open(sidecar::join_path(folder_, domain::segment_file(seq)));
    if (!file) {
        return nullptr;
    }
    if (segments_.size() >= kSegmentsOpenMax) {
        segments_.erase(segments_.begin());
    }
    return segments_.emplace(seq, *std::move(file)).first->second.get();
}

std::uint64_t NodeView::word(std::uint64_t sample) const {
    const std::size_t at = domain::kResidencyHeaderBytes + sample * sizeof(std::uint64_t);
    std::uint64_t word = 0;
    if (table_ != nullptr && table_->bytes().size() >= at + sizeof(word)) {
        std::memcpy(&word, table_->bytes().data() + at, sizeof(word));
    }
    return word;
}

std::optional<NodeView::Record> NodeView::find(std::uint64_t sample) {
    const auto where = domain::unpack_residency(word(sample));
    sidecar::DeviceFile* file = where ? open_segment(where->segment) : nullptr;
    if (file == nullptr) {
        return std::nullopt;
    }
    std::array<std::byte, domain::kRecordHeaderBytes> raw{};
    const auto got = file->read(where->record_offset, raw);
    const auto header = got && *got == raw.size()
                            ? domain::decode_record_header(raw, where->segment)
                            : std::nullopt;
    if (!header || header->sample != domain::SampleId{sample}) {
        return std::nullopt;
    }
    return Record{file, where->record_offset + raw.size(), *header};
}

std::optional<std::vector<std::byte>> NodeView::read(std::uint64_t sample) {
    const auto record = find(sample);
    if (!record) {
        return std::nullopt;
    }
    std::vector<std::byte> payload(record->header.payload_bytes);
    const auto read = record->file->read(record->payload_offset, payload);
    const bool is_whole = read && *read == payload.size();
    return is_whole && crc32c(payload) == record->header.payload_crc32c
               ? std::optional{std::move(payload)}
               : std::nullopt;
}

}  // namespace stoker::world
