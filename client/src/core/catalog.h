#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "client/src/core/mapped_file.h"
#include "common/base/result.h"
#include "common/domain/listing.h"
#include "common/domain/manifest.h"

namespace stoker::client {

// A manifest and its bytes: either a mapped file of a node directory, or built from a listing of
// the origin if there is no sidecar. Immutable; any thread may read.
class Catalog {
public:
    // Maps and verifies a manifest file. kNotFound, kForbidden; kCorruption, kInvalidArgument as
    // ManifestView::open().
    static Result<std::shared_ptr<const Catalog>> open(const std::string& path);

    // Does what open() does, but copies the file into memory, where no other process can truncate
    // or rewrite it.
    static Result<std::shared_ptr<const Catalog>> open_copy(const std::string& path);

    // Sorts and numbers a listing as the sidecar does, so that ids and revision agree.
    // kInvalidArgument as encode_manifest().
    static Result<std::shared_ptr<const Catalog>> build(
        const std::vector<domain::ListedObject>& objects);

    // Opens a copy of the bytes() of another process's catalog. Errors: as open().
    static Result<std::shared_ptr<const Catalog>> from_bytes(std::vector<std::byte> bytes);

    // The manifest file's bytes.
    [[nodiscard]] std::span<const std::byte> bytes() const;

    [[nodiscard]] const domain::ManifestView& manifest() const { return manifest_; }

private:
    using Storage = std::variant<MappedFile, std::vector<std::byte>>;

    Catalog(Storage bytes, domain::ManifestView manifest)
        : bytes_(std::move(bytes)),
          manifest_(manifest) {}

    Storage bytes_;  // moving the object keeps the addresses of the view valid
    domain::ManifestView manifest_;
};

}  // namespace stoker::client
