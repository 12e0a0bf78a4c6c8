#include "common/domain/manifest_rules.h"

#include <cstring>

#include <gtest/gtest.h>

#include "common/base/crc32c.h"
#include "common/base/prng.h"
#include "common/domain/manifest_writer.h"
#include "tests/support/test_seed.h"

namespace stoker::domain {
namespace {

using Bytes = std::vector<std::byte>;

const std::vector<ListedObject> kObjects{
    {"a/1.jpg", 10, "e1"}, {"b/2.jpg", 20, "e2"}, {"b/3.jpg", 5, "e3"}, {"top.txt", 1, "e4"}};

Status check(Bytes bytes) {
    const std::uint32_t checksum = crc32c(std::span{bytes}.first(bytes.size() - 4));
    std::memcpy(bytes.data() + bytes.size() - 4, &checksum, 4);
    const auto view = ManifestView::open(bytes);
    return view ? check_manifest(*view) : Status{fail(view.error())};
}

Bytes made() {
    return encode_manifest(kObjects).value();
}

TEST(ManifestRules, AcceptAManifestMadeFromAListing) {
    EXPECT_TRUE(check(made()).has_value());
}

TEST(ManifestRules, AcceptManifestsOfRandomListings) {
    Prng prng{test::seed()};
    for (int round = 0; round < 50; ++round) {
        std::vector<ListedObject> objects;
        for (std::size_t i = 0, count = 1 + prng.below(300); i < count; ++i) {
            const std::string folder =
                prng.below(4) == 0 ? "" : "f" + std::to_string(prng.below(9)) + "/";
            objects.push_back(
                {folder + std::to_string(i), prng.below(1000), std::to_string(prng())});
        }
        const auto checked = check(encode_manifest(objects).value());
        EXPECT_TRUE(checked.has_value()) << checked.error().message;
    }
}

TEST(ManifestRules, AnyChangedFieldIsRefused) {
    const Bytes good = made();
    for (std::size_t at = 8; at < good.size() - 4; ++at) {
        const bool is_reserved = at >= 56 && at < kManifestHeaderBytes;
        const std::size_t in_record = (at - kManifestHeaderBytes) % kManifestRecordBytes;
        const bool is_record = at >= kManifestHeaderBytes &&
                               at < kManifestHeaderBytes + kObjects.size() * kManifestRecordBytes;
        if (is_reserved || (is_record && (in_record >= 28 || in_record / 2 == 11))) {
            continue;  // reserved: no program reads these bytes
        }
        Bytes bad = good;
        bad[at] ^= std::byte{1};
        EXPECT_FALSE(check(bad).has_value()) << "byte " << at;
    }
}

TEST(ManifestRules, KeysThatLeaveTheRootAreRefused) {
    for (const char* key : {"../a", "a/../b", "a/..", "./a", "/a", "a//b", ".", "a/"}) {
        const auto bytes = encode_manifest({{key, 1, "e"}});
        ASSERT_TRUE(bytes.has_value());
        EXPECT_FALSE(check(*bytes).has_value()) << key;
    }
    EXPECT_TRUE(check(encode_manifest({{"..a/b..", 1, "e"}}).value()).has_value());
}

}  // namespace
}  // namespace stoker::domain
