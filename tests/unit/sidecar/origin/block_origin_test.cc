#include "sidecar/origin/block_origin.h"

#include <fstream>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/prng.h"
#include "sidecar/origin/make_origin.h"
#include "tests/support/fake_s3.h"
#include "tests/support/list_objects.h"
#include "tests/support/origin_calls.h"
#include "tests/support/temp_folder.h"
#include "tests/support/test_seed.h"

namespace stoker::sidecar {
namespace {

using testing::HasSubstr;

constexpr std::uint64_t kBlock = 4096;

std::string random_text(std::size_t size, Prng& random) {
    std::string text(size, '\0');
    for (char& byte : text) {
        byte = static_cast<char>(random());
    }
    return text;
}

class BlockOriginTest : public testing::Test {
protected:
    BlockOriginTest() {
        server_.make_bucket("b");
        origin_ = open("s3://b/set");
    }

    std::unique_ptr<Origin> open(const std::string& uri) {
        OriginOptions options;
        options.endpoint = server_.endpoint();
        options.retry = {.attempts_max = 3, .backoff_first = std::chrono::milliseconds{1}};
        options.format = domain::SampleFormat::kBlocks;
        options.block_bytes = Bytes{kBlock};
        const auto none = [](const char*) -> const char* { return nullptr; };
        return make_origin(uri, options, none, clock_, 1).value();
    }

    Result<OriginBytes> read(const domain::ListedObject& block) {
        return test::fetch_now(*origin_, {block.key, block.etag, block.size_bytes});
    }

    SystemClock clock_;
    test::FakeS3 server_;
    std::unique_ptr<Origin> origin_;
};

TEST_F(BlockOriginTest, BlocksAddUpToTheObjects) {
    Prng random{test::seed()};
    std::map<std::string, std::string> objects;
    for (const std::size_t size :
         {std::size_t{0}, kBlock - 1, kBlock, kBlock + 1, 3 * kBlock, 5 * kBlock - 7}) {
        const std::string key = "dir/" + std::to_string(size);
        objects[key] = random_text(size, random);
        server_.put("b", "set/" + key, objects[key]);
    }
    const auto blocks = test::list_objects(*origin_).value();
    EXPECT_EQ(blocks.size(), 1U + 1U + 1U + 2U + 3U + 5U);
    std::map<std::string, std::string> joined;
    for (const domain::ListedObject& block : blocks) {
        joined[std::string{domain::object_key_of(block.key)}] += test::text_of(read(block).value());
    }
    EXPECT_EQ(joined, objects);
    EXPECT_EQ(server_.request_count("get"), blocks.size());
}

TEST_F(BlockOriginTest, SlicesOfABlockAreItsBytes) {
    Prng random{test::seed()};
    const std::string text = random_text(2 * kBlock, random);
    server_.put("b", "set/a", text);
    const auto block = test::list_objects(*origin_).value().at(1);
    OriginFetch wanted{block.key, block.etag, 100};
    wanted.slice = OriginSlice{50, block.size_bytes};
    EXPECT_EQ(
        test::text_of(test::fetch_now(*origin_, wanted).value()), text.substr(kBlock + 50, 100));
    wanted.slice->offset = kBlock - 99;
    EXPECT_EQ(test::fetch_now(*origin_, wanted).error().code, ErrorCode::kInvalidArgument);
}

TEST_F(BlockOriginTest, ABlockIsOneRangeRequest) {
    server_.put("b", "set/a", std::string(3 * kBlock, 'a'));
    const auto blocks = test::list_objects(*origin_).value();
    server_.clear_requests();
    ASSERT_TRUE(read(blocks[1]).has_value());
    const auto requests = server_.requests();
    ASSERT_EQ(requests.size(), 1U);
    EXPECT_EQ(requests[0].range, "bytes=4096-8191");
    EXPECT_EQ(requests[0].body_bytes, kBlock);
}

TEST_F(BlockOriginTest, ABlockOfAChangedObjectIsAConflictThatNamesTheObject) {
    server_.put("b", "set/a", std::string(3 * kBlock, 'a'));
    const auto blocks = test::list_objects(*origin_).value();
    server_.put("b", "set/a", std::string(3 * kBlock, 'z'));
    const auto bytes = read(blocks[2]);
    ASSERT_FALSE(bytes.has_value());
    EXPECT_EQ(bytes.error().code, ErrorCode::kConflict);
    EXPECT_THAT(bytes.error().message, HasSubstr("'a' of s3://b/set"));
}

TEST_F(BlockOriginTest, ReadsBlocksOfFiles) {
    const test::TempFolder folder;
    const std::string text = std::string(kBlock, 'a') + "rest";
    std::ofstream{folder.path() + "/a"} << text;
    origin_ = open("file://" + folder.path());
    const auto blocks = test::list_objects(*origin_).value();
    ASSERT_EQ(blocks.size(), 2U);
    EXPECT_EQ(
        test::text_of(read(blocks[0]).value()) + test::text_of(read(blocks[1]).value()), text);
}

TEST_F(BlockOriginTest, RefusesASizeOtherThanTheBlocks) {
    server_.put("b", "set/a", std::string(2 * kBlock, 'a'));
    auto block = test::list_objects(*origin_).value()[0];
    block.size_bytes = kBlock + 1;
    const auto bytes = read(block);
    ASSERT_FALSE(bytes.has_value());
    EXPECT_EQ(bytes.error().code, ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace stoker::sidecar
