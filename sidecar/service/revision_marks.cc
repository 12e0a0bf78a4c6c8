#include "sidecar/service/revision_marks.h"

#include <utility>

#include "common/domain/node_directory.h"
#include "sidecar/store/manifest_file.h"

namespace stoker::sidecar {

RevisionMarks::RevisionMarks(const SidecarParts& parts, const DatasetConfig& config)
    : parts_(parts),
      config_(config),
      tasks_(parts.loop) {}

void RevisionMarks::find(domain::RevisionId revision) {
    if (revision_ == revision) {
        return;
    }
    failures_ = last_ == revision ? failures_ : 0;
    last_ = revision_ = revision;
    marks_.reset();
    parts_.io.post([this,
                    revision,
                    post = tasks_.poster(),
                    &device = parts_.device,
                    data = domain::data_folder(config_.directory)] {
        const auto manifest = MappedManifest::open(device, data, revision);
        auto marks =
            manifest ? std::optional{domain::mark_manifest(manifest->view())} : std::nullopt;
        post([this, revision, marks = std::move(marks)] {
            if (revision_ == revision) {
                note(marks);
            }
        });
    });
}

// Takes a result. If the manifest was unreadable, find() reads it again, kTriesMax times.
void RevisionMarks::note(std::optional<domain::ManifestMarks> marks) {
    if (marks || ++failures_ >= kTriesMax) {
        marks_ = std::move(marks).value_or(domain::ManifestMarks{});
    } else {
        revision_.reset();
    }
}

const domain::ManifestMarks* RevisionMarks::of(domain::RevisionId revision) const {
    return revision_ == revision && marks_ ? &*marks_ : nullptr;
}

}  // namespace stoker::sidecar
