#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/bytes.h"
#include "common/base/result.h"
#include "common/domain/ids.h"
#include "common/domain/listing.h"

namespace stoker::domain {

// Writes the manifest of a listing (manifest.h): sorts by key, assigns ids 0..N-1 and labels from
// the parent folder (sorted folder names, as torchvision's ImageFolder does; objects at the root
// have kNoLabel). Takes no memory per object beyond the listing's. Movable. Not thread-safe.
class ManifestWriter {
public:
    // Receives the next bytes of the file.
    using Sink = std::function<Status(std::span<const std::byte>)>;

    // Prepares the manifest. kInvalidArgument: no objects, an empty ETag, a duplicate or empty key,
    // more than 2^56 bytes of objects or 4 GiB of keys; the message names the key.
    static Result<ManifestWriter> create(Listing listing);

    [[nodiscard]] RevisionId revision() const { return revision_; }

    // Length of the file in bytes.
    [[nodiscard]] std::uint64_t file_bytes() const;

    // Passes the file to the sink in pieces of some 64 KiB; stops at its first error.
    Status write(const Sink& sink) const;

private:
    class Output;

    explicit ManifestWriter(Listing listing)
        : listing_(std::move(listing)) {}

    Status measure();
    void write_header(Output& out) const;
    void write_records(Output& out) const;
    void write_labels(Output& out) const;
    void write_pool(Output& out) const;

    Listing listing_;
    std::map<std::string_view, std::int32_t> labels_;
    RevisionId revision_{};
    Bytes total_bytes_{};
    std::uint64_t largest_ = 0;
    std::uint64_t text_bytes_ = 0;   // total length of keys and ETags
    std::uint64_t label_bytes_ = 0;  // total length of the labels' names
};

// The whole file, for few objects. Errors: as ManifestWriter::create() and Listing::add().
Result<std::vector<std::byte>> encode_manifest(const std::vector<ListedObject>& objects);

}  // namespace stoker::domain
