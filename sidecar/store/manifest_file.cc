#include "sidecar/store/manifest_file.h"

#include <fmt/core.h>

#include "common/domain/node_directory.h"

namespace stoker::sidecar {

Result<domain::RevisionId> store_manifest(
    Device& device, const std::string& directory, std::span<const std::byte> bytes) {
    STOKER_TRY(const auto view, domain::ManifestView::open(bytes));
    const auto existing = MappedManifest::open(device, directory, view.revision());
    if (!existing.has_value()) {
        const auto path = join_path(directory, domain::manifest_file(view.revision()));
        STOKER_TRY_VOID(replace_file(device, path, bytes, Durability::kPower));
    }
    return view.revision();
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
