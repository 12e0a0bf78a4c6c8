#include "client/src/core/catalog.h"

#include <utility>

#include <fmt/core.h>

#include "common/domain/manifest_writer.h"

namespace stoker::client {

Result<std::shared_ptr<const Catalog>> Catalog::open(const std::string& path) {
    STOKER_TRY(MappedFile file, MappedFile::open(path));
    if (!MappedFile::is_readable(file.bytes())) {
        return fail(ErrorCode::kCorruption, fmt::format("{} was truncated", path));
    }
    auto manifest = domain::ManifestView::open(file.bytes());
    if (!manifest) {
        return fail(manifest.error().prefixed(path));
    }
    return std::shared_ptr<const Catalog>{new Catalog{std::move(file), *manifest}};
}

Result<std::shared_ptr<const Catalog>> Catalog::open_copy(const std::string& path) {
    STOKER_TRY(const MappedFile file, MappedFile::open(path));
    std::vector<std::byte> bytes(file.bytes().size());
    if (!copy_guarded(file.bytes(), bytes, bytes.size())) {
        return fail(ErrorCode::kCorruption, fmt::format("{} was truncated", path));
    }
    auto catalog = from_bytes(std::move(bytes));
    if (!catalog) {
        return fail(Error{catalog.error()}.prefixed(path));
    }
    return catalog;
}

Result<std::shared_ptr<const Catalog>> Catalog::build(
    const std::vector<domain::ListedObject>& objects) {
    STOKER_TRY(std::vector<std::byte> bytes, domain::encode_manifest(objects));
    return from_bytes(std::move(bytes));
}

Result<std::shared_ptr<const Catalog>> Catalog::from_bytes(std::vector<std::byte> bytes) {
    STOKER_TRY(const domain::ManifestView manifest, domain::ManifestView::open(bytes));
    return std::shared_ptr<const Catalog>{new Catalog{std::move(bytes), manifest}};
}

std::span<const std::byte> Catalog::bytes() const {
    if (const auto* file = std::get_if<MappedFile>(&bytes_)) {
        return file->bytes();
    }
    return std::get<std::vector<std::byte>>(bytes_);
}

}  // namespace stoker::client
