#include "common/config/host_port.h"

#include <gtest/gtest.h>

namespace stoker::config {
namespace {

TEST(ParseHostPort, AcceptsNamesAndBracketedAddresses) {
    EXPECT_EQ(*parse_host_port("[::]:8080"), (HostPort{"::", 8080}));
    EXPECT_EQ(*parse_host_port("localhost:0"), (HostPort{"localhost", 0}));
    for (const char* text : {"", "8080", ":8080", "::1:80", "a:", "a:99999", "a:8o", "[]:80"}) {
        EXPECT_FALSE(parse_host_port(text)) << text;
    }
}

}  // namespace
}  // namespace stoker::config
