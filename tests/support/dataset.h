#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/base/prng.h"
#include "common/domain/manifest.h"
#include "common/domain/manifest_writer.h"

namespace stoker::test {

// A synthetic dataset whose bytes are a function of the sample id, so that any reader can verify
// them. `revision` changes the ETags and payloads, and therefore the revision id.
class Dataset {
public:
    explicit Dataset(std::vector<std::uint64_t> sizes, std::uint64_t revision = 1);

    // `count` samples with sizes from 0 to `size_max`, drawn from `seed`.
    static Dataset random(
        std::uint64_t count,
        std::uint64_t size_max,
        std::uint64_t seed,
        std::uint64_t revision = 1);

    [[nodiscard]] const domain::ManifestView& manifest() const { return view_; }

    [[nodiscard]] const std::vector<std::byte>& manifest_bytes() const { return bytes_; }

    [[nodiscard]] domain::ManifestWriter manifest_writer() const;

    [[nodiscard]] std::vector<std::byte> payload(domain::SampleId sample) const;

private:
    std::vector<std::uint64_t> sizes_;  // in the order of the listing
    std::vector<std::byte> bytes_;
    domain::ManifestView view_;
    std::uint64_t revision_;
};

}  // namespace stoker::test
