#include "common/domain/listing.h"

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "common/base/prng.h"
#include "common/domain/manifest.h"
#include "common/domain/manifest_writer.h"
#include "tests/support/test_seed.h"

namespace stoker::domain {
namespace {

// Texts of all lengths, over several blocks.
std::vector<ListedObject> any_objects(Prng& luck, std::size_t count) {
    std::vector<ListedObject> objects;
    for (std::size_t i = 0; i < count; ++i) {
        const auto key_bytes = luck.below(100) == 0 ? luck.below(60'000) : luck.below(80);
        objects.push_back(
            {std::string(key_bytes, static_cast<char>('a' + luck.below(20))) +
                 fmt::format("/{}", luck()),
             luck.below(1000),
             std::string(1 + luck.below(60), 'e')});
    }
    return objects;
}

TEST(Listing, ReturnsWhatWasAdded) {
    Prng luck(test::seed());
    const auto objects = any_objects(luck, 5000);
    const Listing listing = Listing::of(objects).value();
    EXPECT_EQ(listing.objects(), objects) << "STOKER_TEST_SEED=" << test::seed();
    EXPECT_EQ(listing[4999].key, objects[4999].key);
    EXPECT_TRUE(Listing{}.empty());
}

TEST(Listing, SortsByKey) {
    Prng luck(test::seed());
    auto objects = any_objects(luck, 3000);
    Listing listing = Listing::of(objects).value();
    listing.sort();
    std::ranges::sort(objects, {}, &ListedObject::key);
    EXPECT_EQ(listing.objects(), objects) << "STOKER_TEST_SEED=" << test::seed();
}

TEST(Listing, RefusesTextsThatHaveNoRoom) {
    Listing listing;
    EXPECT_TRUE(listing.add(std::string(65'535, 'k'), 1, std::string(65'535, 'e')));
    EXPECT_EQ(
        listing.add(std::string(65'536, 'k'), 1, "e").error().code, ErrorCode::kInvalidArgument);
    EXPECT_FALSE(listing.add("k", 1, std::string(65'536, 'e')));
    EXPECT_EQ(listing.size(), 1U);
}

TEST(ManifestWriter, WritesPiecesOfTheFile) {
    Prng luck(test::seed());
    const auto objects = any_objects(luck, 5000);
    const auto writer = ManifestWriter::create(Listing::of(objects).value()).value();
    std::vector<std::byte> file;
    std::size_t pieces = 0;
    ASSERT_TRUE(writer.write([&](std::span<const std::byte> piece) {
        file.insert(file.end(), piece.begin(), piece.end());
        ++pieces;
        return Status{};
    }));
    EXPECT_EQ(file.size(), writer.file_bytes());
    EXPECT_GT(pieces, 10U);
    const auto view = ManifestView::open(file).value();
    EXPECT_EQ(view.revision(), writer.revision());
    EXPECT_EQ(view.sample_count(), objects.size());
}

TEST(ManifestWriter, StopsAtTheFirstErrorOfTheSink) {
    Prng luck(test::seed());
    const auto objects = any_objects(luck, 5000);
    const auto writer = ManifestWriter::create(Listing::of(objects).value()).value();
    int pieces = 0;
    const Status status = writer.write([&](auto) {
        ++pieces;
        return pieces < 3 ? Status{} : fail(ErrorCode::kResourceExhausted, "full");
    });
    EXPECT_EQ(status.error().code, ErrorCode::kResourceExhausted);
    EXPECT_EQ(pieces, 3);
}

}  // namespace
}  // namespace stoker::domain
