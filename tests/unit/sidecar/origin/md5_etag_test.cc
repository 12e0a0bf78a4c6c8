#include "sidecar/origin/md5_etag.h"

#include <string_view>

#include <gtest/gtest.h>

namespace stoker::sidecar {
namespace {

std::span<const std::byte> bytes(std::string_view text) {
    return std::as_bytes(std::span{text});
}

TEST(Md5Etag, RefusesOtherBytes) {
    EXPECT_TRUE(matches_md5_etag(bytes("hello\n"), "b1946ac92492d2347c6235b4d2611184"));
    EXPECT_FALSE(matches_md5_etag(bytes("hellO\n"), "b1946ac92492d2347c6235b4d2611184"));
    EXPECT_TRUE(matches_md5_etag({}, "d41d8cd98f00b204e9800998ecf8427e"));
}

TEST(Md5Etag, OtherEtagsAreNone) {
    EXPECT_TRUE(is_md5_etag("b1946ac92492d2347c6235b4d2611184", {}));
    EXPECT_FALSE(is_md5_etag("b1946ac92492d2347c6235b4d2611184-3", {}));
    EXPECT_FALSE(is_md5_etag("12-1700000000-7", {}));
    EXPECT_FALSE(is_md5_etag("B1946AC92492D2347C6235B4D2611184", {}));
    EXPECT_FALSE(is_md5_etag("", {}));
}

TEST(Md5Etag, EncryptedObjectsHaveNone) {
    const std::string etag = "b1946ac92492d2347c6235b4d2611184";
    EXPECT_TRUE(is_md5_etag(etag, {{"x-amz-server-side-encryption", "AES256"}}));
    EXPECT_FALSE(is_md5_etag(etag, {{"X-Amz-Server-Side-Encryption", "aws:kms"}}));
    EXPECT_FALSE(is_md5_etag(etag, {{"x-amz-server-side-encryption", "aws:kms:dsse"}}));
    EXPECT_FALSE(
        is_md5_etag(etag, {{"x-amz-server-side-encryption-customer-algorithm", "AES256"}}));
}

}  // namespace
}  // namespace stoker::sidecar
