#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "common/domain/manifest.h"
#include "sidecar/device/device.h"

namespace stoker::sidecar {

// Writes `manifest.<revision>` into a node directory: whole or not at all, durable on return. The
// revision is read from `bytes`, which must be a good manifest (kCorruption, kInvalidArgument). An
// existing one is left alone: the same revision has the same bytes.
Result<domain::RevisionId> store_manifest(
    Device& device, const std::string& directory, std::span<const std::byte> bytes);

// The revisions whose manifests lie in a node directory, in no meaningful order.
Result<std::vector<domain::RevisionId>> list_manifests(
    Device& device, const std::string& directory);

// A manifest file of a node directory, mapped read-only. The view lives as long as this does.
// Movable; thread-safe.
class MappedManifest {
public:
    // Verifies the whole file's checksum. kNotFound: there is none. kCorruption, kInvalidArgument
    // (another version, or another revision than its name says): the caller may unlink it and make
    // it anew.
    static Result<MappedManifest> open(
        Device& device, const std::string& directory, domain::RevisionId revision);

    [[nodiscard]] const domain::ManifestView& view() const { return view_; }

private:
    MappedManifest(std::unique_ptr<DeviceMapping> mapping, domain::ManifestView view)
        : mapping_(std::move(mapping)),
          view_(view) {}

    std::unique_ptr<DeviceMapping> mapping_;
    domain::ManifestView view_;
};

}  // namespace stoker::sidecar
