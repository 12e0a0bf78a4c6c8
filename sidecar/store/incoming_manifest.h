#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "common/base/result.h"
#include "common/domain/ids.h"
#include "sidecar/device/device.h"

namespace stoker::sidecar {

// A manifest on its way into a node directory, from a peer or from our own listing. It is checked as
// a whole before it gets its name, so that readers find a good one or none. Blocking; not
// thread-safe. The device must outlive it. The destructor removes an unfinished file. Several
// transfers from peers and one from a listing do not disturb each other: each has its own file until
// it is finished.
class IncomingManifest {
public:
    enum class From : std::uint8_t {
        kListing,
        kPeer,  // from a peer; checked with domain::check_manifest()
    };

    static constexpr int kFilesMax = 16;  // most files of transfers from peers, all of one revision

    // Larger manifests are not usable: keys and ETags have at most 4 GiB.
    static constexpr std::uint64_t kBytesMax = std::uint64_t{8} << 30U;

    // Creates the file. kResourceExhausted: larger than kBytesMax or than the free disk space.
    static Result<std::unique_ptr<IncomingManifest>> create(
        Device& device,
        const std::string& directory,
        domain::RevisionId revision,
        std::uint64_t total_bytes,
        From from = From::kPeer);

    IncomingManifest(const IncomingManifest&) = delete;
    IncomingManifest& operator=(const IncomingManifest&) = delete;
    ~IncomingManifest();

    // Appends the next bytes. kCorruption: more than the announced total.
    Status append(std::span<const std::byte> bytes);

    [[nodiscard]] bool is_complete() const { return written_ == total_bytes_; }

    // Call after the last byte: checks the file and gives it its name; durable on return.
    // kCorruption: not a manifest of this revision.
    Status finish();

private:
    IncomingManifest(
        Device& device,
        std::string path,
        std::string temporary,
        std::unique_ptr<DeviceFile> file,
        domain::RevisionId revision,
        std::uint64_t total_bytes,
        From from);

    Device& device_;
    const std::string path_;
    const std::string temporary_;
    std::unique_ptr<DeviceFile> file_;  // nullptr: finished
    const domain::RevisionId revision_;
    const std::uint64_t total_bytes_;
    const From from_;
    std::uint64_t written_ = 0;
};

}  // namespace stoker::sidecar
