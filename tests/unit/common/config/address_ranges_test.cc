#include "common/config/address_ranges.h"

#include <gtest/gtest.h>

namespace stoker::config {
namespace {

bool contains(const std::vector<std::string>& ranges, const std::string& peer) {
    return AddressRanges::parse(ranges)->contains_peer(peer);
}

TEST(AddressRanges, MatchesIpv4AndIpv6) {
    EXPECT_TRUE(contains({"10.7.0.0/16"}, "10.7.255.1:80"));
    EXPECT_FALSE(contains({"10.7.0.0/16"}, "10.8.0.1:80"));
    EXPECT_TRUE(contains({"10.7.8.0/21"}, "10.7.15.9:80"));
    EXPECT_FALSE(contains({"10.7.8.0/21"}, "10.7.16.0:80"));
    EXPECT_TRUE(contains({"192.0.2.0/24", "fd00::/9"}, "[fd7f::1]:80"));
    EXPECT_FALSE(contains({"192.0.2.0/24", "fd00::/9"}, "[fd80::1]:80"));
    EXPECT_TRUE(contains({"::/0"}, "10.1.2.3:80"));
    EXPECT_FALSE(contains({"0.0.0.0/0"}, "[fd00::1]:80"));
    EXPECT_TRUE(contains({"10.1.2.3"}, "10.1.2.3:80"));
    EXPECT_FALSE(contains({"10.1.2.3"}, "10.1.2.2:80"));
    EXPECT_FALSE(contains({}, "10.1.2.3:80"));
    EXPECT_FALSE(contains({"::/0"}, "unknown"));
}

TEST(AddressRanges, RejectsAndQuotesInvalidRange) {
    for (const char* text :
         {"", "/8", "10.0.0.0/33", "fd00::/129", "10.0.0/8", "10.0.0.0/", "10.0.0.0/8x", "lan"}) {
        const auto ranges = AddressRanges::parse({"10.0.0.0/8", text});
        ASSERT_FALSE(ranges) << text;
        EXPECT_NE(ranges.error().message.find("\"" + std::string{text} + "\""), std::string::npos);
    }
}

TEST(LoopbackPeer, MatchesLoopbackAddressesOnly) {
    EXPECT_TRUE(is_loopback_peer("127.0.0.1:5"));
    EXPECT_TRUE(is_loopback_peer("[::1]:5"));
    EXPECT_FALSE(is_loopback_peer("10.0.0.1:5"));
    EXPECT_FALSE(is_loopback_peer("unknown"));
}

}  // namespace
}  // namespace stoker::config
