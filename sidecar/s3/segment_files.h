#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <unordered_map>

#include "common/base/unique_fd.h"
#include "common/domain/ids.h"
#include "sidecar/attached/cached_dataset.h"

namespace stoker::s3 {

// Keeps segment files open from which samples are sent; closes the least recently used ones. Used
// by one thread.
class SegmentFiles {
public:
    using File = std::shared_ptr<const UniqueFd>;

    explicit SegmentFiles(std::size_t files_max)
        : files_max_(files_max) {}

    // nullptr: no such file now, or no descriptor left. Keep the result while sending.
    File open(const std::shared_ptr<attached::DatasetFiles>& dataset, domain::SegmentSeq seq);

    // Closes files that were unlinked, because an open one keeps its disk space.
    void retire_unlinked();

private:
    struct Entry {
        std::shared_ptr<attached::DatasetFiles> dataset;
        domain::SegmentSeq seq;
        File file;
    };

    struct Key {
        const attached::DatasetFiles* dataset;
        std::uint32_t seq;

        bool operator==(const Key&) const = default;
    };

    struct Hash {
        std::size_t operator()(const Key& key) const {
            return std::hash<const void*>{}(key.dataset) ^ (key.seq * 0x9E3779B97F4A7C15ULL);
        }
    };

    std::size_t files_max_;
    std::list<Entry> entries_;  // the most recently used one first
    std::unordered_map<Key, std::list<Entry>::iterator, Hash> places_;
};

}  // namespace stoker::s3
