#include "sidecar/store/manifest_file.h"

#include <fmt/core.h>

#include "common/domain/node_directory.h"
#include "sidecar/store/incoming_manifest.h"

namespace stoker::sidecar {

Status store_manifest(
    Device& device, const std::string& directory, const domain::ManifestWriter& manifest) {
    if (MappedManifest::open(device, directory, manifest.revision())) {
        return {};
    }
    STOKER_TRY(
        const auto file,
        IncomingManifest::create(
            device,
            directory,
            manifest.revision(),
            manifest.file_bytes(),
            IncomingManifest::From::kListing));
    STOKER_TRY_VOID(
        manifest.write([&file](std::span<const std::byte> piece) { return file->append(piece); }));
    return file->finish();
}

Result<std::vector<domain::RevisionId>> list_manifests(
    Device& device, const std::string& directory) {
    STOKER_TRY(const auto names, device.list(directory));
    std::vector<domain::RevisionId> revisions;
    for (const std::string& name : names) {
        if (const auto revision = domain::parse_manifest_name(name)) {
            revisions.push_back(*revision);
        }
    }
    return revisions;
}

Result<MappedManifest> MappedManifest::open(
    Device& device, const std::string& directory, domain::RevisionId revision) {
    const auto path = join_path(directory, domain::manifest_file(revision));
    STOKER_TRY(auto mapping, device.map(path, MapMode::kRead));
    auto view = domain::ManifestView::open(mapping->bytes());
    if (!view.has_value()) {
        return fail(view.error().prefixed(path));
    }
    if (view->revision() != revision) {
        return fail(
            ErrorCode::kInvalidArgument,
            fmt::format("{} holds revision {}", path, domain::to_string(view->revision())));
    }
    return MappedManifest{std::move(mapping), *view};
}

}  // namespace stoker::sidecar
