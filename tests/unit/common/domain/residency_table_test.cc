#include "common/domain/residency_table.h"

#include <gtest/gtest.h>

namespace stoker::domain {
namespace {

TEST(ResidencyTable, HeaderRoundTrips) {
    const ResidencyHeader header{RevisionId{0xABCDEF}, 5000};
    EXPECT_EQ(decode_residency_header(encode_residency_header(header)).value(), header);
    EXPECT_EQ(residency_file_bytes(5000), 64U + 40000U);
}

TEST(ResidencyTable, RejectsEveryFlippedHeaderBit) {
    const auto good = encode_residency_header({RevisionId{7}, 3});
    for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
        auto bad = good;
        bad.at(bit / 8) ^= static_cast<std::byte>(1U << (bit % 8));
        EXPECT_FALSE(decode_residency_header(bad).has_value()) << "bit " << bit;
    }
}

TEST(ResidencyTable, ErrorNamesTheOtherVersion) {
    auto header = encode_residency_header({RevisionId{7}, 3});
    header.at(8) = std::byte{9};
    const auto result = decode_residency_header(header);
    ASSERT_FALSE(result.has_value());
    EXPECT_EQ(result.error().code, ErrorCode::kInvalidArgument);
    EXPECT_EQ(result.error().message, "residency table version 9, this program reads version 1");
}

}  // namespace
}  // namespace stoker::domain
