#include "common/domain/manifest_marks.h"

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "common/domain/manifest_writer.h"

namespace stoker::domain {
namespace {

std::vector<ListedObject> objects(std::uint64_t count) {
    std::vector<ListedObject> result;
    for (std::uint64_t i = 0; i < count; ++i) {
        result.push_back({fmt::format("k{:06}", i), i, "e"});
    }
    return result;
}

// A manifest and the bytes that its view points into.
struct Listing {
    explicit Listing(std::vector<ListedObject> listed)
        : bytes(encode_manifest(listed).value()),
          view(ManifestView::open(bytes).value()) {}

    std::vector<std::byte> bytes;
    ManifestView view;
};

TEST(ManifestMarks, EqualListingsDoNotDiffer) {
    const Listing listing{objects(1000)};
    EXPECT_EQ(find_difference(listing.view, mark_manifest(listing.view)), std::nullopt);
}

TEST(ManifestMarks, DigestsCoverEverySampleOnce) {
    for (const std::uint64_t count : {1, 2, 255, 256, 257, 1000, 5001}) {
        const Listing listing{objects(count)};
        const ManifestMarks marks = mark_manifest(listing.view);
        EXPECT_LE(marks.digests.size(), kManifestMarksMax);
        std::uint64_t before = 0;
        for (std::size_t k = 0; k < marks.digests.size(); ++k) {
            EXPECT_GT(piece_end(marks, k), before);
            before = piece_end(marks, k);
        }
        EXPECT_EQ(before, count);
    }
}

TEST(ManifestMarks, FindTheChangedSampleOfASmallListing) {
    const ManifestMarks theirs = mark_manifest(Listing{objects(100)}.view);
    auto overwritten = objects(100);
    overwritten[41].etag = "new";
    EXPECT_EQ(find_difference(Listing{overwritten}.view, theirs), (SampleRange{41, 1}));
    auto grown = objects(100);
    grown.push_back({"k000007x", 1, "e"});
    EXPECT_EQ(find_difference(Listing{grown}.view, theirs), (SampleRange{8, 1}));
    auto resized = objects(100);
    resized[99].size_bytes = 1;
    EXPECT_EQ(find_difference(Listing{resized}.view, theirs), (SampleRange{99, 1}));
}

TEST(ManifestMarks, FindTheChangedPieceOfALargeListing) {
    const ManifestMarks theirs = mark_manifest(Listing{objects(2560)}.view);
    auto overwritten = objects(2560);
    overwritten[1234].etag = "new";
    EXPECT_EQ(find_difference(Listing{overwritten}.view, theirs), (SampleRange{1230, 10}));
}

TEST(ManifestMarks, DetectATruncatedListing) {
    const ManifestMarks theirs = mark_manifest(Listing{objects(100)}.view);
    EXPECT_EQ(find_difference(Listing{objects(99)}.view, theirs), (SampleRange{99, 1}));
    EXPECT_EQ(find_difference(Listing{objects(103)}.view, theirs), (SampleRange{100, 3}));
}

TEST(ManifestMarks, ReportNoDifferenceWithoutMarks) {
    EXPECT_EQ(find_difference(Listing{objects(3)}.view, {}), std::nullopt);
}

// Marks come from another node's sidecar: whatever numbers they have, find_difference() is safe.
TEST(ManifestMarks, AcceptAnyNumbers) {
    const ManifestMarks theirs{~std::uint64_t{0}, std::vector<std::uint64_t>(256, 7)};
    EXPECT_TRUE(find_difference(Listing{objects(3)}.view, theirs).has_value());
}

}  // namespace
}  // namespace stoker::domain
