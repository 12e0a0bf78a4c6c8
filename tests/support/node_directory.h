#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "common/base/unique_fd.h"
#include "common/domain/ids.h"
#include "common/domain/listing.h"
#include "common/domain/residency_word.h"

namespace stoker::test {

// Writes a node directory in the shared formats without a sidecar, for tests and benches of readers.
// Aborts on file system errors. Not thread-safe.
class NodeDirectory {
public:
    // Writes a manifest, a residency table (all absent) and an empty segments folder below `path`, which
    // must exist.
    NodeDirectory(std::string path, std::vector<domain::ListedObject> objects);

    [[nodiscard]] const std::string& path() const { return path_; }

    [[nodiscard]] domain::RevisionId revision() const { return revision_; }

    [[nodiscard]] std::uint64_t sample_count() const { return sample_count_; }

    // Starts the next segment; later put() calls go there. Returns its number.
    domain::SegmentSeq start_segment(
        std::uint64_t capacity_bytes,
        domain::SegmentClass segment_class = domain::SegmentClass::kResident);

    // Appends a record and publishes its place in the residency table. Needs a started segment with
    // room.
    domain::Residency put(domain::SampleId sample, std::span<const std::byte> payload);

    // Stores any entry in the residency table, valid or not.
    void set_word(domain::SampleId sample, std::uint64_t word);

    void unlink_segment(domain::SegmentSeq seq);

    // The path of a segment file, for tests that damage it.
    [[nodiscard]] std::string segment_path(domain::SegmentSeq seq) const;

    // Replaces the residency table by a new, empty file of the same name, as a leader that rebuilds it
    // does.
    void replace_residency_table();

private:
    void make_residency_table();

    std::string path_;
    domain::RevisionId revision_{};
    std::uint64_t sample_count_ = 0;
    UniqueFd residency_;
    UniqueFd segment_;
    domain::SegmentSeq seq_{};
    domain::SegmentClass segment_class_ = domain::SegmentClass::kResident;
    std::uint64_t offset_ = 0;
    std::uint64_t capacity_bytes_ = 0;
};

}  // namespace stoker::test
