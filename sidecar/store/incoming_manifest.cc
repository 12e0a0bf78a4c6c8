#include "sidecar/store/incoming_manifest.h"

#include <array>
#include <utility>

#include <fmt/format.h>

#include "common/domain/manifest_rules.h"
#include "common/domain/node_directory.h"

namespace stoker::sidecar {

namespace {

struct Temporary {
    std::string path;
    std::unique_ptr<DeviceFile> file;
};

// Only one leader lists at a time, so an existing file of this name is a leftover and is replaced.
Result<Temporary> create_for_listing(Device& device, const std::string& manifest) {
    std::string path = manifest + ".tmp";
    [[maybe_unused]] const auto unlinked = device.unlink(path);
    STOKER_TRY(auto file, device.create(path));
    return Temporary{std::move(path), std::move(file)};
}

// Gives each transfer from a peer its own file, because a transfer that was given up may still be
// writing.
Result<Temporary> create_for_peer(Device& device, const std::string& manifest) {
    for (int number = 0;; ++number) {
        std::string path = fmt::format("{}.{}.tmp", manifest, number);
        auto file = device.create(path);
        if (file) {
            return Temporary{std::move(path), *std::move(file)};
        }
        if (file.error().code != ErrorCode::kAlreadyExists ||
            number + 1 == IncomingManifest::kFilesMax) {
            return fail(file.error());
        }
    }
}

}  // namespace

Result<std::unique_ptr<IncomingManifest>> IncomingManifest::create(
    Device& device,
    const std::string& directory,
    domain::RevisionId revision,
    std::uint64_t total_bytes,
    From from) {
    STOKER_TRY(const auto space, device.space(directory));
    if (total_bytes > kBytesMax || Bytes{total_bytes} > space.available) {
        return fail(
            ErrorCode::kResourceExhausted,
            fmt::format("a manifest of {} bytes has no room on the disk", total_bytes));
    }
    const std::string path = join_path(directory, domain::manifest_file(revision));
    STOKER_TRY(
        auto temporary,
        from == From::kListing ? create_for_listing(device, path) : create_for_peer(device, path));
    return std::unique_ptr<IncomingManifest>{new IncomingManifest{
        device,
        path,
        std::move(temporary.path),
        std::move(temporary.file),
        revision,
        total_bytes,
        from}};
}

IncomingManifest::IncomingManifest(
    Device& device,
    std::string path,
    std::string temporary,
    std::unique_ptr<DeviceFile> file,
    domain::RevisionId revision,
    std::uint64_t total_bytes,
    From from)
    : device_(device),
      path_(std::move(path)),
      temporary_(std::move(temporary)),
      file_(std::move(file)),
      revision_(revision),
      total_bytes_(total_bytes),
      from_(from) {}

// Removes an unfinished file. If the program is killed before this, the store does so when it
// opens.
IncomingManifest::~IncomingManifest() {
    if (file_ != nullptr) {
        [[maybe_unused]] const auto unlinked = device_.unlink(temporary_);
    }
}

Status IncomingManifest::append(std::span<const std::byte> bytes) {
    if (bytes.size() > total_bytes_ - written_) {
        return fail(ErrorCode::kCorruption, "the manifest is longer than announced");
    }
    const std::array<DeviceFile::ConstBuffer, 1> parts{bytes};
    STOKER_TRY_VOID(file_->write(written_, parts));
    written_ += bytes.size();
    return {};
}

Status IncomingManifest::finish() {
    STOKER_TRY_VOID(file_->sync());
    {
        STOKER_TRY(const auto mapping, device_.map(temporary_, MapMode::kRead));
        STOKER_TRY(const auto view, domain::ManifestView::open(mapping->bytes()));
        if (view.revision() != revision_) {
            return fail(ErrorCode::kCorruption, "the manifest has another revision than announced");
        }
        if (from_ == From::kPeer) {
            STOKER_TRY_VOID(domain::check_manifest(view));
        }
    }
    STOKER_TRY_VOID(device_.rename(temporary_, path_));
    file_.reset();
    return device_.sync_folder(parent_path(path_));
}

}  // namespace stoker::sidecar
