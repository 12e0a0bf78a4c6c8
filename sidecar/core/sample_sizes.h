#pragma once

#include <cstdint>
#include <span>

#include "common/base/bytes.h"
#include "common/domain/ids.h"
#include "common/domain/manifest.h"

namespace stoker::sidecar {

// Payload bytes of every sample of one revision, from a manifest or a plain array. A view; its
// source must outlive it.
class SampleSizes {
public:
    SampleSizes(const domain::ManifestView& manifest)
        : manifest_(&manifest),
          count_(manifest.sample_count()),
          total_(manifest.total_bytes()) {}

    explicit SampleSizes(std::span<const std::uint64_t> sizes)
        : sizes_(sizes),
          count_(sizes.size()) {
        for (const std::uint64_t size : sizes) {
            total_ += Bytes{size};
        }
    }

    [[nodiscard]] std::uint64_t count() const { return count_; }

    [[nodiscard]] Bytes total() const { return total_; }

    // `sample` must be below count().
    [[nodiscard]] Bytes of(domain::SampleIndex sample) const {
        return Bytes{
            manifest_ != nullptr ? manifest_->size_bytes(domain::SampleId{sample})
                                 : sizes_[sample]};
    }

private:
    const domain::ManifestView* manifest_ = nullptr;
    std::span<const std::uint64_t> sizes_;
    std::uint64_t count_ = 0;
    Bytes total_{};
};

}  // namespace stoker::sidecar
