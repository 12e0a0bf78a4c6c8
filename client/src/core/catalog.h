#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "client/src/core/mapped_file.h"
#include "common/base/result.h"
#include "common/domain/manifest.h"

namespace stoker::client {

// A manifest together with the bytes it stands in: a mapped file of a node directory, or one made
// from a listing of the origin when no sidecar has made it. Immutable; any thread may read.
class Catalog {
public:
    // Maps and verifies a manifest file. kNotFound, kForbidden; kCorruption, kInvalidArgument as
    // ManifestView::open().
    static Result<std::shared_ptr<const Catalog>> open(const std::string& path);

    // As open(), with a copy of the file in memory, which nobody can cut or rewrite.
    static Result<std::shared_ptr<const Catalog>> open_copy(const std::string& path);

    // Sorts and numbers a listing as the sidecar does, so that ids and revision agree.
    // kInvalidArgument as encode_manifest().
    static Result<std::shared_ptr<const Catalog>> build(std::vector<domain::ListedObject> objects);

    // From the bytes of another process's catalog. Errors as open().
    static Result<std::shared_ptr<const Catalog>> from_bytes(std::vector<std::byte> bytes);

    // The manifest file's bytes.
    [[nodiscard]] std::span<const std::byte> bytes() const;

    [[nodiscard]] const domain::ManifestView& manifest() const { return manifest_; }

private:
    using Storage = std::variant<MappedFile, std::vector<std::byte>>;

    Catalog(Storage bytes, domain::ManifestView manifest)
        : bytes_(std::move(bytes)),
          manifest_(manifest) {}

    Storage bytes_;  // moving it does not move what the view points to
    domain::ManifestView manifest_;
};

}  // namespace stoker::client
