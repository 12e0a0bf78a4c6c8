#include "common/domain/manifest.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "common/domain/manifest_writer.h"

namespace stoker::domain {
namespace {

std::vector<ListedObject> digits() {
    return {
        {"7/0002.png", 300, "c"},
        {"0/0001.png", 100, "a"},
        {"7/0001.png", 200, "b"},
        {"README", 5, "d"},
    };
}

TEST(Manifest, IdsFollowTheBytewiseOrderOfTheKeys) {
    const auto bytes = encode_manifest(digits()).value();
    const auto view = ManifestView::open(bytes).value();
    ASSERT_EQ(view.sample_count(), 4U);
    EXPECT_EQ(view.sample(SampleId{0}).key, "0/0001.png");
    EXPECT_EQ(view.sample(SampleId{1}).key, "7/0001.png");
    EXPECT_EQ(view.sample(SampleId{2}).key, "7/0002.png");
    EXPECT_EQ(view.sample(SampleId{3}).key, "README");
    EXPECT_EQ(view.sample(SampleId{2}).etag, "c");
    EXPECT_EQ(view.size_bytes(SampleId{2}), 300U);
    EXPECT_EQ(view.total_bytes(), Bytes{605});
    EXPECT_EQ(view.largest_sample_bytes(), 300U);
}

TEST(Manifest, LabelsAreTheSortedParentFolders) {
    const auto bytes = encode_manifest(digits()).value();
    const auto view = ManifestView::open(bytes).value();
    ASSERT_EQ(view.label_count(), 2U);
    EXPECT_EQ(view.label_name(0), "0");
    EXPECT_EQ(view.label_name(1), "7");
    EXPECT_EQ(view.sample(SampleId{0}).label, 0);
    EXPECT_EQ(view.sample(SampleId{1}).label, 1);
    EXPECT_EQ(view.sample(SampleId{3}).label, kNoLabel);
}

TEST(Manifest, LabelIsTheInnermostFolder) {
    const auto bytes = encode_manifest({{"train/cat/1.jpg", 1, "x"}}).value();
    EXPECT_EQ(ManifestView::open(bytes).value().label_name(0), "cat");
}

TEST(Manifest, RevisionIgnoresTheListingOrder) {
    const auto revision = [](std::vector<ListedObject> objects) {
        const auto bytes = encode_manifest(objects).value();
        return ManifestView::open(bytes).value().revision();
    };
    auto reversed = digits();
    std::ranges::reverse(reversed);
    EXPECT_EQ(revision(digits()), revision(reversed));
    for (const auto change : {0, 1, 2}) {
        auto changed = digits();
        change == 0   ? void(changed[0].key += "x")
        : change == 1 ? void(++changed[0].size_bytes)
                      : void(changed[0].etag += "x");
        EXPECT_NE(revision(digits()), revision(changed));
    }
}

TEST(Manifest, KeysMayHoldAnyBytes) {
    const std::string odd = "weird dir/\xC3\xBC %2F+..&?#.png";
    const auto bytes = encode_manifest({{odd, 1, "e"}}).value();
    EXPECT_EQ(ManifestView::open(bytes).value().sample(SampleId{0}).key, odd);
}

TEST(Manifest, RejectsAndNamesInvalidObjects) {
    EXPECT_EQ(
        encode_manifest({}).error().message, "the dataset is empty: no object under its prefix");
    EXPECT_EQ(
        encode_manifest({{"a/1", 1, ""}}).error().message,
        "object 'a/1' has no ETag, so a change of it could not be seen");
    EXPECT_EQ(
        encode_manifest({{"a", 1, "x"}, {"a", 1, "x"}}).error().message,
        "object 'a' is listed twice");
    EXPECT_EQ(
        encode_manifest({{"a.tar/1", 1, "range:0:9:5:e"}, {"a.tar/1", 1, "range:3:9:5:e"}})
            .error()
            .message,
        "object 'a.tar/1' is listed twice: the members of a sample must follow each other in its "
        "tar "
        "shard");
}

TEST(Manifest, RejectsImpossibleSizes) {
    constexpr std::uint64_t kMost = std::uint64_t{1} << 56U;
    EXPECT_TRUE(encode_manifest({{"a", kMost - 1, "x"}, {"b", 1, "x"}}).has_value());
    EXPECT_EQ(
        encode_manifest({{"a", kMost, "x"}, {"b", 1, "x"}}).error().message,
        "the objects up to 'b' (1 bytes) have more than 72057594037927936 bytes together, the most "
        "that a dataset may have");
    EXPECT_FALSE(encode_manifest({{"a", UINT64_MAX, "x"}, {"b", UINT64_MAX, "x"}}).has_value());
}

TEST(Manifest, RejectsEveryFlippedBit) {
    const auto good = encode_manifest(digits()).value();
    for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
        auto bad = good;
        bad.at(bit / 8) ^= static_cast<std::byte>(1U << (bit % 8));
        EXPECT_FALSE(ManifestView::open(bad).has_value()) << "bit " << bit;
    }
}

TEST(Manifest, RejectsEveryTruncation) {
    const auto good = encode_manifest(digits()).value();
    for (std::size_t size = 0; size < good.size(); ++size) {
        EXPECT_FALSE(ManifestView::open(std::span{good}.first(size)).has_value()) << size;
    }
}

// Even without verifying the checksum, a view must never read outside its bytes (run this with the
// address sanitizer).
TEST(Manifest, DamageNeverCausesReadsOutOfBounds) {
    const auto good = encode_manifest(digits()).value();
    for (std::size_t at = kManifestHeaderBytes; at < good.size(); ++at) {
        auto bad = good;
        bad.at(at) = std::byte{0xFF};
        const auto view = ManifestView::open(bad, false);
        ASSERT_TRUE(view.has_value());
        for (std::uint64_t id = 0; id < view->sample_count(); ++id) {
            const SampleInfo info = view->sample(SampleId{id});
            EXPECT_LE(info.key.size() + info.etag.size(), bad.size());
        }
        EXPECT_LE(view->label_name(1).size(), bad.size());
    }
}

}  // namespace
}  // namespace stoker::domain
