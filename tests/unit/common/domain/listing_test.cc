#include "common/domain/listing.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "common/base/prng.h"
#include "tests/support/test_seed.h"
#include "tests/unit/common/domain/any_objects.h"

namespace stoker::domain {
namespace {

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

TEST(Listing, RefusesKeysAndETagsOver65535Bytes) {
    Listing listing;
    EXPECT_TRUE(listing.add(std::string(65'535, 'k'), 1, std::string(65'535, 'e')));
    EXPECT_EQ(
        listing.add(std::string(65'536, 'k'), 1, "e").error().code, ErrorCode::kInvalidArgument);
    EXPECT_FALSE(listing.add("k", 1, std::string(65'536, 'e')));
    EXPECT_EQ(listing.size(), 1U);
}

}  // namespace
}  // namespace stoker::domain
