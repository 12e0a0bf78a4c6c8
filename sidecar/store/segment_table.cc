#include "sidecar/store/segment_table.h"

#include "common/base/check.h"

namespace stoker::sidecar {

void SegmentTable::add(domain::SegmentSeq seq, const SegmentInfo& info) {
    STOKER_CHECK(info.live_samples == 0, "a new segment has no live records yet");
    const bool fresh = segments_.emplace(seq, info).second;
    STOKER_CHECK(fresh, "a segment number was used twice");
    file_bytes_ += info.file_bytes;
}

void SegmentTable::add_live(domain::SegmentSeq seq, std::uint64_t record_bytes) {
    SegmentInfo& info = at(seq);
    info.live_bytes += record_bytes;
    ++info.live_samples;
    ClassUsage& total = usage_[info.segment_class];
    total.live_bytes += record_bytes;
    ++total.live_samples;
}

void SegmentTable::remove_live(domain::SegmentSeq seq, std::uint64_t record_bytes) {
    SegmentInfo& info = at(seq);
    STOKER_CHECK(
        info.live_samples > 0 && info.live_bytes >= record_bytes,
        "the segment has fewer live records than are removed");
    info.live_bytes -= record_bytes;
    --info.live_samples;
    ClassUsage& total = usage_[info.segment_class];
    total.live_bytes -= record_bytes;
    --total.live_samples;
}

SegmentInfo& SegmentTable::at(domain::SegmentSeq seq) {
    const auto found = segments_.find(seq);
    STOKER_CHECK(found != segments_.end(), "a record in an unknown segment");
    return found->second;
}

const SegmentInfo* SegmentTable::find(domain::SegmentSeq seq) const {
    const auto found = segments_.find(seq);
    return found == segments_.end() ? nullptr : &found->second;
}

void SegmentTable::set_file_bytes(domain::SegmentSeq seq, std::uint64_t file_bytes) {
    if (const auto found = segments_.find(seq); found != segments_.end()) {
        file_bytes_ += file_bytes - found->second.file_bytes;
        found->second.file_bytes = file_bytes;
    }
}

void SegmentTable::set(domain::SegmentSeq seq, bool SegmentInfo::*flag, bool value) {
    if (const auto found = segments_.find(seq); found != segments_.end()) {
        found->second.*flag = value;
    }
}

void SegmentTable::erase(domain::SegmentSeq seq) {
    STOKER_CHECK(at(seq).live_samples == 0, "erasing a segment with live records");
    file_bytes_ -= at(seq).file_bytes;
    segments_.erase(seq);
}

ClassUsage SegmentTable::usage(domain::SegmentClass segment_class) const {
    const auto found = usage_.find(segment_class);
    return found == usage_.end() ? ClassUsage{} : found->second;
}

std::optional<domain::SegmentSeq> SegmentTable::emptiest() const {
    std::optional<domain::SegmentSeq> best;
    double best_share = 0.5;
    for (const auto& [seq, info] : segments_) {
        const double share =
            static_cast<double>(info.live_bytes) / static_cast<double>(info.file_bytes);
        if (!info.growing && share < best_share) {
            best = seq;
            best_share = share;
        }
    }
    return best;
}

std::optional<domain::SegmentSeq> SegmentTable::oldest_unsynced() const {
    for (const auto& [seq, info] : segments_) {
        if (!info.growing && !info.synced) {
            return seq;
        }
    }
    return std::nullopt;
}

std::vector<std::uint32_t> SegmentTable::trusted() const {
    std::vector<std::uint32_t> out;
    for (const auto& [seq, info] : segments_) {
        if (info.synced && !info.damaged) {
            out.push_back(seq.value());
        }
    }
    return out;
}

}  // namespace stoker::sidecar
