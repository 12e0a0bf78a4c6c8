#pragma once

#include <optional>

#include "common/domain/ids.h"
#include "common/domain/manifest_marks.h"
#include "sidecar/config/sidecar_config.h"
#include "sidecar/service/sidecar_parts.h"

namespace stoker::sidecar {

// Computes ManifestMarks of a revision that another sidecar listed: on a worker, from the node
// directory's manifest, because a leader has marks only if its own dataset is pinned. Without marks
// the other ranks could not tell where their listings differ. Use it on the loop's thread.
class RevisionMarks {
public:
    // `parts` and `config` must outlive this object.
    RevisionMarks(const SidecarParts& parts, const DatasetConfig& config);

    // Starts computing the marks of `revision`, unless that has started already.
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
    std::optional<domain::RevisionId> last_;      // revision of the last find()
    int failures_ = 0;                            // failed reads of last_'s manifest
    std::optional<domain::ManifestMarks> marks_;  // marks of revision_
    LoopTasks tasks_;
};

}  // namespace stoker::sidecar
