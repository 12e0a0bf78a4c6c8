#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "common/domain/manifest.h"
#include "common/domain/manifest_writer.h"
#include "sidecar/device/device.h"

namespace stoker::sidecar {

// Writes `manifest.<revision>` into a node directory atomically; durable on return. Does not
// replace a valid file, because the same revision has the same bytes.
Status store_manifest(
    Device& device, const std::string& directory, const domain::ManifestWriter& manifest);

// Revisions that have a manifest in a node directory, in no particular order.
Result<std::vector<domain::RevisionId>> list_manifests(
    Device& device, const std::string& directory);

// A manifest file of a node directory, mapped read-only. The view is valid while this lives.
// Movable; thread-safe.
class MappedManifest {
public:
    // Maps a file and verifies its whole checksum. kNotFound: no such file. kCorruption,
    // kInvalidArgument (another version, or a revision that differs from the name): the caller may
    // unlink the file and write it again.
    static Result<MappedManifest> open(
        Device& device, const std::string& directory, domain::RevisionId revision);

    [[nodiscard]] const domain::ManifestView& view() const { return view_; }

    // The bytes of the whole file.
    [[nodiscard]] std::span<const std::byte> bytes() const { return mapping_->bytes(); }

private:
    MappedManifest(std::unique_ptr<DeviceMapping> mapping, domain::ManifestView view)
        : mapping_(std::move(mapping)),
          view_(view) {}

    std::unique_ptr<DeviceMapping> mapping_;
    domain::ManifestView view_;
};

}  // namespace stoker::sidecar
