#include "common/domain/manifest_writer.h"

#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "common/base/prng.h"
#include "common/domain/manifest.h"
#include "tests/support/test_seed.h"
#include "tests/unit/common/domain/any_objects.h"

namespace stoker::domain {
namespace {

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
