#pragma once

#include <cstdint>
#include <functional>
#include <utility>

#include "common/base/bytes.h"
#include "common/base/check.h"
#include "common/base/flat_map.h"
#include "common/domain/ids.h"

namespace stoker::sidecar {

using domain::SampleIndex;

// The samples that some reader has drawn and not read, each once however many readers wait for it.
// Samples that are not resident need room in the window until they are read. Costs O(1) per call.
// Not thread-safe.
class UnreadDraws {
public:
    // Returns the bytes that a sample takes on the node.
    using SizeOf = std::function<Bytes(SampleIndex)>;

    explicit UnreadDraws(SizeOf size_of)
        : size_of_(std::move(size_of)) {}

    void on_drawn(SampleIndex sample, bool is_resident) {
        Entry& entry = entries_[sample];
        if (entry.readers++ == 0) {
            entry.is_resident = is_resident;
            bytes_ += is_resident ? Bytes{} : size_of_(sample);
        }
    }

    // One reader has read the sample, or gives up its draw. The reader must have drawn it.
    void on_read(SampleIndex sample) {
        Entry* const entry = entries_.find(sample);
        STOKER_CHECK(entry != nullptr, "on_read() without a draw of the sample");
        if (--entry->readers == 0) {
            bytes_ -= entry->is_resident ? Bytes{} : size_of_(sample);
            entries_.erase(sample);
        }
    }

    // The sample was stored, or has left the node (`is_resident` false).
    void on_residency(SampleIndex sample, bool is_resident) {
        Entry* const entry = entries_.find(sample);
        if (entry == nullptr || std::exchange(entry->is_resident, is_resident) == is_resident) {
            return;
        }
        is_resident ? bytes_ -= size_of_(sample) : bytes_ += size_of_(sample);
    }

    void clear() {
        entries_.clear();
        bytes_ = {};
    }

    // Bytes on the node of the drawn, unread samples that are not resident.
    [[nodiscard]] Bytes bytes() const { return bytes_; }

private:
    struct Entry {
        std::uint32_t readers = 0;
        bool is_resident = false;
    };

    SizeOf size_of_;
    FlatMap<Entry> entries_;
    Bytes bytes_{};
};

}  // namespace stoker::sidecar
