#include "common/domain/manifest_marks.h"

#include <algorithm>
#include <string_view>

namespace stoker::domain {

namespace {

// An FNV-1a hash of 64 bits, computed step by step.
class Digest {
public:
    void add(const SampleInfo& sample) {
        add(sample.key);
        add(sample.etag);
        for (unsigned shift = 0; shift < 64; shift += 8) {
            step(static_cast<std::uint8_t>(sample.size_bytes >> shift));
        }
    }

    [[nodiscard]] std::uint64_t value() const { return hash_; }

private:
    void add(std::string_view text) {
        for (const char c : text) {
            step(static_cast<std::uint8_t>(c));
        }
        step(0);
    }

    void step(std::uint8_t byte) { hash_ = (hash_ ^ byte) * 0x100000001B3ULL; }

    std::uint64_t hash_ = 0xCBF29CE484222325ULL;
};

}  // namespace

// The result without an overflowing product: samples = whole * pieces + rest.
std::uint64_t piece_end(const ManifestMarks& marks, std::size_t k) {
    const std::uint64_t pieces = marks.digests.size();
    const std::uint64_t whole = marks.samples / pieces;
    const std::uint64_t rest = marks.samples % pieces;
    return whole * (k + 1) + rest * (k + 1) / pieces;
}

ManifestMarks mark_manifest(const ManifestView& manifest) {
    ManifestMarks marks;
    marks.samples = manifest.sample_count();
    marks.digests.resize(std::min<std::uint64_t>(marks.samples, kManifestMarksMax));
    Digest digest;
    std::uint64_t at = 0;
    for (std::size_t k = 0; k < marks.digests.size(); ++k) {
        for (const std::uint64_t end = piece_end(marks, k); at < end; ++at) {
            digest.add(manifest.sample(SampleId{at}));
        }
        marks.digests[k] = digest.value();
    }
    return marks;
}

std::optional<SampleRange> find_difference(const ManifestView& ours, const ManifestMarks& theirs) {
    Digest digest;
    std::uint64_t begin = 0;
    for (std::size_t k = 0; k < theirs.digests.size(); ++k) {
        const std::uint64_t end = piece_end(theirs, k);
        for (std::uint64_t at = begin; at < std::min(end, ours.sample_count()); ++at) {
            digest.add(ours.sample(SampleId{at}));
        }
        if (end > ours.sample_count() || digest.value() != theirs.digests[k]) {
            return SampleRange{std::min(begin, ours.sample_count()), end - begin};
        }
        begin = end;
    }
    if (!theirs.digests.empty() && ours.sample_count() > theirs.samples) {
        return SampleRange{theirs.samples, ours.sample_count() - theirs.samples};
    }
    return std::nullopt;
}

}  // namespace stoker::domain
