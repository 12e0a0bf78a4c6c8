#include "common/domain/http_uri.h"

#include <gtest/gtest.h>

namespace stoker::domain {
namespace {

TEST(HttpUri, AcceptsFoldersOfWebServers) {
    for (const char* uri :
         {"http://host",
          "https://host/",
          "https://data.example.com:8443/a%20b/c..d/",
          "http://[::1]:80/a",
          "https://10.0.0.1/~me/v=1,2"}) {
        EXPECT_TRUE(check_http_uri(uri).has_value()) << uri;
    }
}

TEST(HttpUri, RefusesWhatIsNotOne) {
    for (const char* uri :
         {"ftp://host/a",
          "https:///a",
          "https://me@host/a",
          "https://host/a?b",
          "https://host/a#b",
          "https://host?b",
          "https://host/a b",
          "https://host/a%2",
          "https://host/a%zz",
          "https://host/\xC3\xA9",
          "https://host/a\n",
          "https://host/..",
          "https://host/./a",
          "https://host/a/%2e%2E/b",
          "https://host/a/.%2e"}) {
        EXPECT_FALSE(check_http_uri(uri).has_value()) << uri;
    }
}

}  // namespace
}  // namespace stoker::domain
