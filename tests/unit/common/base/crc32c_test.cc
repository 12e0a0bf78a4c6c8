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

TEST(Crc32c, CombinesPartsOfAnyLength) {
    const std::string_view text = "the fireman shovels coal from the tender";
    const std::uint32_t whole = crc32c(bytes_of(text));
    for (std::size_t split = 0; split <= text.size(); ++split) {
        const auto head = crc32c(bytes_of(text.substr(0, split)));
        const auto tail = crc32c(bytes_of(text.substr(split)));
        EXPECT_EQ(crc32c_combine(head, tail, text.size() - split), whole) << "split at " << split;
    }
}

TEST(Crc32c, CombinesPartsBeyondFourGibibytes) {
    constexpr std::uint64_t kZeroes = (std::uint64_t{5} << 30U) + 3;
    std::uint32_t zeroes = 0;  // checksum of kZeroes zero bytes, computed by doubling
    std::uint32_t power = crc32c(std::array<std::byte, 1>{});
    std::uint64_t power_bytes = 1;
    for (std::uint64_t left = kZeroes; left != 0; left >>= 1U, power_bytes *= 2) {
        if ((left & 1U) != 0) {
            zeroes = crc32c_combine(power, zeroes, kZeroes & (power_bytes - 1));
        }
        power = crc32c_combine(power, power, power_bytes);
    }
    const auto text = bytes_of("tender");
    EXPECT_EQ(crc32c_combine(zeroes, crc32c(text), text.size()), crc32c(text, zeroes));
}

TEST(Crc32c, EmptyInputIsZero) {
    EXPECT_EQ(crc32c({}), 0U);
}

}  // namespace
}  // namespace stoker
