#include "common/base/crc32c.h"

#include <array>
#include <string_view>

#include <gtest/gtest.h>

namespace stoker {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
    return std::as_bytes(std::span{text});
}

// Check values of RFC 3720, appendix B.4.
TEST(Crc32c, MatchesTheExamplesOfTheRfc) {
    std::array<std::byte, 32> block{};
    EXPECT_EQ(crc32c(block), 0x8A9136AAU);
    block.fill(std::byte{0xFF});
    EXPECT_EQ(crc32c(block), 0x62A8AB43U);
    for (std::size_t i = 0; i < block.size(); ++i) {
        block.at(i) = static_cast<std::byte>(i);
    }
    EXPECT_EQ(crc32c(block), 0x46DD794EU);
    EXPECT_EQ(crc32c(bytes_of("123456789")), 0xE3069283U);
}

TEST(Crc32c, ContinuesFromASeedAtAnySplit) {
    const std::string_view text = "the fireman shovels coal from the tender";
    const std::uint32_t whole = crc32c(bytes_of(text));
    for (std::size_t split = 0; split <= text.size(); ++split) {
        const auto head = crc32c(bytes_of(text.substr(0, split)));
        EXPECT_EQ(crc32c(bytes_of(text.substr(split)), head), whole) << "split at " << split;
    }
}

TEST(Crc32c, EmptyInputIsZero) {
    EXPECT_EQ(crc32c({}), 0U);
}

}  // namespace
}  // namespace stoker
