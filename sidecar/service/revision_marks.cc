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
    revision_ = revision;
    marks_.reset();
    parts_.io.post([this,
                    revision,
                    post = tasks_.poster(),
                    &device = parts_.device,
                    data = domain::data_folder(config_.directory)] {
        const auto manifest = MappedManifest::open(device, data, revision);
        auto marks = manifest ? domain::mark_manifest(manifest->view()) : domain::ManifestMarks{};
        post([this, revision, marks = std::move(marks)] {
            if (revision_ == revision) {
                marks_ = marks;
            }
        });
    });
}

const domain::ManifestMarks* RevisionMarks::of(domain::RevisionId revision) const {
    return revision_ == revision && marks_ ? &*marks_ : nullptr;
}

}  // namespace stoker::sidecar
