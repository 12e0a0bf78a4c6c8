#include "tests/support/dataset.h"

#include <utility>

#include <fmt/core.h>

namespace stoker::test {

namespace {

std::vector<domain::ListedObject> objects_of(
    const std::vector<std::uint64_t>& sizes, std::uint64_t revision) {
    std::vector<domain::ListedObject> objects;
    objects.reserve(sizes.size());
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        objects.push_back(
            {fmt::format("class{}/{:08}.bin", i % 10, i),
             sizes[i],
             fmt::format("etag{}", revision)});
    }
    // The manifest sorts the objects by key, so sizes[i] is not the size of sample i: only the
    // manifest says which sample has which size.
    return objects;
}

}  // namespace

Dataset::Dataset(std::vector<std::uint64_t> sizes, std::uint64_t revision)
    : sizes_(std::move(sizes)),
      bytes_(domain::encode_manifest(objects_of(sizes_, revision)).value()),
      view_(domain::ManifestView::open(bytes_).value()),
      revision_(revision) {}

Dataset Dataset::random(
    std::uint64_t count, std::uint64_t size_max, std::uint64_t seed, std::uint64_t revision) {
    Prng luck{seed};
    std::vector<std::uint64_t> sizes;
    for (std::uint64_t i = 0; i < count; ++i) {
        sizes.push_back(luck.below(size_max + 1));
    }
    return Dataset{std::move(sizes), revision};
}

domain::ManifestWriter Dataset::manifest_writer() const {
    return domain::ManifestWriter::create(
               domain::Listing::of(objects_of(sizes_, revision_)).value())
        .value();
}

std::vector<std::byte> Dataset::payload(domain::SampleId sample) const {
    Prng bytes{sample.value() * 0x10001 + revision_};
    std::vector<std::byte> out(view_.size_bytes(sample));
    for (std::byte& byte : out) {
        byte = static_cast<std::byte>(bytes());
    }
    return out;
}

}  // namespace stoker::test
