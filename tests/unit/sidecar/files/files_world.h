#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "common/base/prng.h"
#include "sidecar/attached/cached_dataset.h"
#include "sidecar/origin/origin.h"
#include "tests/support/node_directory.h"
#include "tests/support/temp_folder.h"

// Shared by the tests of sidecar/files.
namespace stoker::files {

inline std::vector<std::byte> random_bytes(std::size_t count, std::uint64_t seed) {
    std::vector<std::byte> bytes(count);
    Prng random{seed};
    for (auto& byte : bytes) {
        byte = static_cast<std::byte>(random());
    }
    return bytes;
}

// Fails every fetch and counts them. Not thread-safe.
class EmptyOrigin final : public sidecar::Origin {
public:
    [[nodiscard]] std::string describe() const override { return "empty"; }

    Result<domain::Listing> list(
        const std::function<void(std::uint64_t)>& /*progress*/, std::stop_token /*stop*/) override {
        return domain::Listing{};
    }

    void fetch(
        sidecar::OriginFetch /*request*/,
        std::function<void(Result<sidecar::OriginBytes>)> done) override {
        ++fetches;
        done(fail(ErrorCode::kNotFound, "the origin is empty"));
    }

    int fetches = 0;
};

// A dataset in a folder of its own, without a sidecar. `guest`: the pod reads it as a guest.
struct LocalDataset {
    LocalDataset(const std::vector<domain::ListedObject>& objects, bool guest)
        : node(folder.path(), objects),
          cached(0, config_of(guest), "test", nullptr),
          files(attached::DatasetFiles::open(folder.path(), node.revision(), guest).value()) {}

    static sidecar::DatasetConfig config_of(bool guest) {
        sidecar::DatasetConfig config;
        config.name = "data";
        config.guest = guest;
        return config;
    }

    // Stores the sample in a segment of its own.
    std::vector<std::byte> store(
        std::uint64_t id,
        std::size_t bytes,
        domain::SegmentClass segment_class = domain::SegmentClass::kResident) {
        const std::vector<std::byte> payload = random_bytes(bytes, id + 1);
        segment = node.start_segment(bytes + 4096, segment_class);
        node.put(domain::SampleId{id}, payload);
        return payload;
    }

    void forget(std::uint64_t id) { node.set_word(domain::SampleId{id}, 0); }

    test::TempFolder folder;
    test::NodeDirectory node;
    attached::CachedDataset cached;
    std::shared_ptr<attached::DatasetFiles> files;
    domain::SegmentSeq segment{};  // the last one
};

}  // namespace stoker::files
