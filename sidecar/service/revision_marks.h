#pragma once

#include <optional>

#include "common/domain/ids.h"
#include "common/domain/manifest_marks.h"
#include "sidecar/config/sidecar_config.h"
#include "sidecar/service/sidecar_parts.h"

namespace stoker::sidecar {

// Marks of a revision that another sidecar has listed. A leader has marks only if its own dataset
// is pinned, so a follower computes them on a worker from the node directory's manifest. Without
// them the other ranks could not tell where their listings differ. Use it on the loop's thread.
class RevisionMarks {
public:
    // `parts` and `config` must outlive this object.
    RevisionMarks(const SidecarParts& parts, const DatasetConfig& config);

    // Computes the marks of `revision`, unless that has begun.
    void find(domain::RevisionId revision);

    // nullptr: not found yet. Empty marks: the manifest could not be read
    // several times.
    [[nodiscard]] const domain::ManifestMarks* of(domain::RevisionId revision) const;

private:
    static constexpr int kTriesMax = 5;

    void note(std::optional<domain::ManifestMarks> marks);

    const SidecarParts& parts_;
    const DatasetConfig& config_;
    std::optional<domain::RevisionId> revision_;
    std::optional<domain::RevisionId> last_;      // of the last find()
    int failures_ = 0;                            // of last_
    std::optional<domain::ManifestMarks> marks_;  // of revision_
    LoopTasks tasks_;
};

}  // namespace stoker::sidecar
