#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "common/base/bytes.h"
#include "common/domain/ids.h"
#include "common/domain/residency_word.h"

namespace stoker::sidecar {

// The store's knowledge about one segment file.
struct SegmentInfo {
    domain::SegmentClass segment_class = domain::SegmentClass::kResident;
    std::uint64_t file_bytes = 0;
    std::uint64_t live_bytes = 0;  // records whose word points here, with headers and padding
    std::uint64_t live_samples = 0;
    bool growing = false;  // still takes records, or waits for its footer
    bool synced = false;   // durable, and not written since
    bool damaged = false;  // holds a payload that did not match its checksum

    bool operator==(const SegmentInfo&) const = default;
};

struct ClassUsage {
    std::uint64_t live_bytes = 0;
    std::uint64_t live_samples = 0;
};

// Bookkeeping of a store's segments; touches no file. Not thread-safe.
class SegmentTable {
public:
    void add(domain::SegmentSeq seq, const SegmentInfo& info);

    // Counts a record of this many bytes as live in `seq`; the second function counts it as dead.
    void add_live(domain::SegmentSeq seq, std::uint64_t record_bytes);
    void remove_live(domain::SegmentSeq seq, std::uint64_t record_bytes);

    // nullptr: no such segment. Valid until the next add() or erase().
    [[nodiscard]] const SegmentInfo* find(domain::SegmentSeq seq) const;

    // Does nothing if there is no such segment.
    void set_file_bytes(domain::SegmentSeq seq, std::uint64_t file_bytes);

    void set_full_grown(domain::SegmentSeq seq) { set(seq, &SegmentInfo::growing, false); }

    void set_synced(domain::SegmentSeq seq) { set(seq, &SegmentInfo::synced, true); }

    void set_damaged(domain::SegmentSeq seq) { set(seq, &SegmentInfo::damaged, true); }

    // Removes a segment, which must have no live records.
    void erase(domain::SegmentSeq seq);

    // The bytes and samples of a class. O(1).
    [[nodiscard]] ClassUsage usage(domain::SegmentClass segment_class) const;

    [[nodiscard]] std::uint64_t file_bytes() const { return file_bytes_; }

    [[nodiscard]] const std::map<domain::SegmentSeq, SegmentInfo>& all() const { return segments_; }

    // The segment with the smallest live share among complete segments less than half live.
    [[nodiscard]] std::optional<domain::SegmentSeq> emptiest() const;

    // The oldest complete segment that is not synced.
    [[nodiscard]] std::optional<domain::SegmentSeq> oldest_unsynced() const;

    // Segments whose payloads need no check after a reboot, ascending.
    [[nodiscard]] std::vector<std::uint32_t> trusted() const;

private:
    [[nodiscard]] SegmentInfo& at(domain::SegmentSeq seq);
    void set(domain::SegmentSeq seq, bool SegmentInfo::*flag, bool value);

    std::map<domain::SegmentSeq, SegmentInfo> segments_;
    std::map<domain::SegmentClass, ClassUsage> usage_;
    std::uint64_t file_bytes_ = 0;
};

}  // namespace stoker::sidecar
