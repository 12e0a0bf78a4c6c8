#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "common/base/bytes.h"
#include "common/domain/ids.h"
#include "sidecar/core/sample_sizes.h"

namespace stoker::sidecar {

using domain::SampleIndex;

// The chunk of the origin in which each sample lies (common/domain/chunk_format.h). Empty: each
// sample is an object of its own. 8 bytes per sample. Immutable value.
class SampleChunks {
public:
    SampleChunks() = default;

    // `chunk_of[i]`: chunk of sample i, for every sample. `sizes`: payload bytes of the same
    // samples.
    SampleChunks(std::vector<std::uint32_t> chunk_of, const SampleSizes& sizes)
        : chunk_of_(std::move(chunk_of)),
          samples_(chunk_of_.size()) {
        for (const std::uint32_t chunk : chunk_of_) {
            ends_.resize(std::max<std::size_t>(ends_.size(), chunk + std::size_t{1}));
            ++ends_[chunk];
        }
        bytes_.resize(ends_.size());
        std::uint32_t begin = 0;
        for (std::uint32_t& end : ends_) {
            largest_ = std::max(largest_, end);
            begin += std::exchange(end, begin);  // for now where the chunk begins
        }
        for (SampleIndex sample = 0; sample < chunk_of_.size(); ++sample) {
            samples_[ends_[chunk_of_[sample]]++] = sample;
            bytes_[chunk_of_[sample]] += sizes.of(sample);
        }
    }

    [[nodiscard]] bool is_empty() const { return chunk_of_.empty(); }

    // Number of chunks; some may have no samples.
    [[nodiscard]] std::uint32_t count() const { return static_cast<std::uint32_t>(ends_.size()); }

    // The chunks of all samples.
    [[nodiscard]] std::span<const std::uint32_t> all() const { return chunk_of_; }

    [[nodiscard]] std::uint32_t of(SampleIndex sample) const { return chunk_of_[sample]; }

    // Ids of the chunk's samples, ascending.
    [[nodiscard]] std::span<const SampleIndex> samples(std::uint32_t chunk) const {
        const std::uint32_t begin = chunk == 0 ? 0 : ends_[chunk - 1];
        return std::span{samples_}.subspan(begin, ends_[chunk] - begin);
    }

    // Payload bytes of the chunk's samples.
    [[nodiscard]] Bytes bytes(std::uint32_t chunk) const { return bytes_[chunk]; }

    // Number of samples in the largest chunk.
    [[nodiscard]] std::uint32_t largest() const { return largest_; }

private:
    std::vector<std::uint32_t> chunk_of_;
    std::vector<SampleIndex> samples_;  // ids, chunk after chunk
    std::vector<std::uint32_t> ends_;   // by chunk: its end in samples_
    std::vector<Bytes> bytes_;
    std::uint32_t largest_ = 0;
};

}  // namespace stoker::sidecar
