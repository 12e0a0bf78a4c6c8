#include "common/base/wire.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

TEST(Wire, RoundTripsEveryType) {
    WireWriter out;
    out.put(std::uint8_t{7}).put(std::uint32_t{0xDEADBEEF}).put_text("coal").put(std::int64_t{-2});
    WireReader in{out.view()};
    EXPECT_EQ(in.get<std::uint8_t>(), 7);
    EXPECT_EQ(in.get<std::uint32_t>(), 0xDEADBEEF);
    EXPECT_EQ(in.get_text(4), "coal");
    EXPECT_EQ(in.get<std::int64_t>(), -2);
    EXPECT_TRUE(in.ok());
    EXPECT_EQ(in.left(), 0U);
}

TEST(Wire, IntegersAreLittleEndian) {
    WireWriter out;
    out.put(std::uint16_t{0x0102});
    EXPECT_EQ(out.view()[0], std::byte{2});
    EXPECT_EQ(out.view()[1], std::byte{1});
}

TEST(Wire, ReadingPastTheEndReturnsZeros) {
    WireWriter out;
    out.put(std::uint16_t{9});
    WireReader in{out.view()};
    EXPECT_EQ(in.get<std::uint32_t>(), 0U);
    EXPECT_FALSE(in.ok());
    EXPECT_EQ(in.get<std::uint8_t>(), 0U) << "also where one byte would still be there";
}

TEST(Wire, PaddingNeverTruncates) {
    WireWriter out;
    out.put(std::uint64_t{1});
    out.pad_to(4);
    EXPECT_EQ(out.size(), 8U);
    out.pad_to(16);
    EXPECT_EQ(out.size(), 16U);
}

}  // namespace
}  // namespace stoker
