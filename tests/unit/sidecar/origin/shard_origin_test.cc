#include "sidecar/origin/shard_origin.h"

#include <fstream>
#include <map>
#include <set>
#include <stop_token>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/domain/manifest.h"
#include "common/domain/manifest_writer.h"
#include "sidecar/origin/make_origin.h"
#include "tests/support/fake_s3.h"
#include "tests/support/fake_s3_fault.h"
#include "tests/support/list_objects.h"
#include "tests/support/megatron_text.h"
#include "tests/support/origin_calls.h"
#include "tests/support/tar_text.h"
#include "tests/support/temp_folder.h"
#include "tests/support/tfrecord_text.h"

namespace stoker::sidecar {
namespace {

using test::tar_end;
using test::tar_member;
using testing::HasSubstr;

class ShardOriginTest : public testing::Test {
protected:
    ShardOriginTest() {
        server_.make_bucket("b");
        origin_ = open("s3://b/set");
    }

    std::unique_ptr<Origin> open(
        const std::string& uri,
        domain::SampleFormat format = domain::SampleFormat::kTar,
        domain::RecordRows records = {}) {
        OriginOptions options;
        options.endpoint = server_.endpoint();
        options.retry = {.attempts_max = 3, .backoff_first = std::chrono::milliseconds{1}};
        options.format = format;
        options.records = std::move(records);
        const auto none = [](const char*) -> const char* { return nullptr; };
        return make_origin(uri, options, none, clock_, 1).value();
    }

    // A tar shard of `count` samples from number `first` on, in one folder per class. A sample is
    // an image file of `bytes` bytes and a class file.
    static std::string shard(int first, int count, std::size_t bytes) {
        std::string tar;
        for (int i = first; i < first + count; ++i) {
            const std::string label = std::to_string(i % 3);
            const std::string stem = "n" + label + "/" + std::to_string(i);
            tar += tar_member(stem + ".jpg", std::string(bytes, static_cast<char>('a' + i % 26))) +
                   tar_member(stem + ".cls", label);
        }
        return tar + tar_end();
    }

    Result<OriginBytes> read(const domain::ListedObject& sample) {
        return test::fetch_now(*origin_, {sample.key, sample.etag, sample.size_bytes});
    }

    Error list_error() {
        const auto listed = test::list_objects(*origin_);
        EXPECT_FALSE(listed.has_value());
        return listed ? Error{} : listed.error();
    }

    SystemClock clock_;
    test::FakeS3 server_;
    std::unique_ptr<Origin> origin_;
};

TEST_F(ShardOriginTest, SamplesAreRangesOfTheirShards) {
    std::map<std::string, std::string> shards{
        {"a.tar", shard(0, 5, 700)}, {"sub/b.tar", shard(5, 3, 10)}};
    for (const auto& [key, text] : shards) {
        server_.put("b", "set/" + key, text);
    }
    server_.put("b", "set/a.json", "{}");
    const auto samples = test::list_objects(*origin_).value();
    ASSERT_EQ(samples.size(), 8U);
    EXPECT_EQ(samples[0].key, "a.tar/n0/0");
    EXPECT_EQ(samples[5].key, "sub/b.tar/n2/5");
    EXPECT_EQ(server_.request_count("get"), 2U) << "one window a shard";
    EXPECT_EQ(test::text_of(read(samples[0]).value()), shards["a.tar"].substr(0, 512 + 1024 + 513));
    EXPECT_EQ(test::text_of(read(samples[5]).value()), shards["sub/b.tar"].substr(0, 3 * 512 + 1));
}

TEST_F(ShardOriginTest, LabelsAreFoldersInTheShard) {
    server_.put("b", "set/a.tar", shard(0, 5, 10) + tar_member("plain.txt", "x"));
    server_.put("b", "set/b.tar", tar_member("plain.txt", "x"));
    const auto bytes = domain::encode_manifest(test::list_objects(*origin_).value()).value();
    const auto manifest = domain::ManifestView::open(bytes).value();
    EXPECT_EQ(manifest.label_count(), 3U);
    EXPECT_EQ(manifest.label_name(1), "n1");
    EXPECT_EQ(manifest.sample(domain::SampleId{5}).key, "b.tar/plain");
    EXPECT_EQ(manifest.sample(domain::SampleId{5}).label, domain::kNoLabel);
}

TEST_F(ShardOriginTest, OnlyHeadersOfLargeSamplesAreRead) {
    server_.put("b", "set/a.tar", shard(0, 20, 200'000));
    EXPECT_EQ(test::list_objects(*origin_)->size(), 20U);
    std::uint64_t bytes = 0;
    for (const auto& request : server_.requests()) {
        bytes += request.operation == "get" ? request.body_bytes : 0;
    }
    EXPECT_LE(server_.request_count("get"), 21U);
    EXPECT_LT(bytes, 20U * 200'000U / 4);
}

TEST_F(ShardOriginTest, ManyShardsAreListedSideBySide) {
    for (int i = 0; i < 150; ++i) {
        server_.put("b", "set/" + std::to_string(i) + ".tar", shard(2 * i, 2, 10));
    }
    server_.put("b", "set/empty.tar", "");
    std::uint64_t last = 0;
    const auto samples = test::list_objects(*origin_, [&](std::uint64_t count) { last = count; });
    EXPECT_EQ(samples->size(), 300U);
    EXPECT_EQ(last, 300U);
}

TEST_F(ShardOriginTest, OnlyChangedAndNewShardsAreIndexedAgain) {
    for (const char* key : {"a.tar", "a.tar-b.tar", "b.tar", "c.tar"}) {
        server_.put("b", std::string{"set/"} + key, shard(0, 4, 10));
    }
    const auto bytes = domain::encode_manifest(test::list_objects(*origin_).value()).value();
    const auto known = domain::ManifestView::open(bytes).value();
    server_.clear_requests();
    EXPECT_EQ(origin_->list_again(known, {}, {})->size(), 16U);
    EXPECT_EQ(server_.request_count("get"), 0U);
    server_.put("b", "set/b.tar", shard(1, 5, 10));
    server_.put("b", "set/d.tar", shard(0, 2, 10));
    server_.clear_requests();
    const auto again = origin_->list_again(known, {}, {}).value().objects();
    EXPECT_EQ(server_.request_count("get"), 2U);
    const auto anew = test::list_objects(*origin_).value();
    EXPECT_EQ(domain::encode_manifest(again).value(), domain::encode_manifest(anew).value());
}

TEST_F(ShardOriginTest, ChangedShardIsAConflict) {
    server_.put("b", "set/a.tar", shard(0, 5, 700));
    const auto samples = test::list_objects(*origin_).value();
    server_.put("b", "set/a.tar", shard(1, 5, 700));
    const auto bytes = read(samples[2]);
    ASSERT_FALSE(bytes.has_value());
    EXPECT_EQ(bytes.error().code, ErrorCode::kConflict);
    EXPECT_THAT(bytes.error().message, HasSubstr("'a.tar' of s3://b/set"));
}

TEST_F(ShardOriginTest, NeighboursShareARequest) {
    server_.put("b", "set/a.tar", shard(0, 10, 700));
    const auto samples = test::list_objects(*origin_).value();
    // After a read the origin knows how many unwanted bytes between two samples cost less than a
    // second request.
    ASSERT_TRUE(read(samples[0]).has_value());
    server_.clear_requests();
    std::vector<OriginRequest> requests;
    std::vector<test::FetchFuture> futures;
    for (const auto& sample : samples) {
        auto promise = std::make_shared<std::promise<Result<OriginBytes>>>();
        futures.push_back(promise->get_future());
        requests.push_back(
            {{sample.key, sample.etag, sample.size_bytes},
             [promise](OriginAnswer answer) { promise->set_value(std::move(answer.bytes)); }});
    }
    origin_->fetch_together(std::move(requests));
    for (auto& future : futures) {
        EXPECT_TRUE(future.get().has_value());
    }
    EXPECT_LT(server_.request_count("get"), samples.size());
}

TEST_F(ShardOriginTest, RefusesWhatIsNoTarShard) {
    EXPECT_EQ(list_error().code, ErrorCode::kNotFound);
    server_.put("b", "set/a.tar", std::string(2000, 'z'));
    const Error foreign = list_error();
    EXPECT_EQ(foreign.code, ErrorCode::kCorruption);
    EXPECT_THAT(foreign.message, HasSubstr("s3://b/set"));
    EXPECT_THAT(foreign.message, HasSubstr("'a.tar': at byte 0: not a tar header"));
    server_.put("b", "set/b.tar.gz", "x");
    EXPECT_THAT(list_error().message, HasSubstr("'b.tar.gz'"));
    EXPECT_THAT(list_error().message, HasSubstr("compressed"));
}

TEST_F(ShardOriginTest, AManifestOfObjectsIsRefused) {
    server_.put("b", "set/a.tar", shard(0, 1, 10));
    const auto bytes = read({"a.tar", 100, "etag"});
    ASSERT_FALSE(bytes.has_value());
    EXPECT_EQ(bytes.error().code, ErrorCode::kInvalidArgument);
    EXPECT_EQ(read({"a.tar/0", 100, "range:0:50:5:e"}).error().code, ErrorCode::kInvalidArgument)
        << "the sample ends behind its shard";
}

TEST_F(ShardOriginTest, ReadsShardsOfADirectory) {
    const test::TempFolder folder;
    const std::string text = shard(0, 4, 900);
    std::ofstream{folder.path() + "/a.tar"} << text;
    origin_ = open("file://" + folder.path());
    const auto samples = test::list_objects(*origin_).value();
    ASSERT_EQ(samples.size(), 4U);
    EXPECT_EQ(test::text_of(read(samples[0]).value()), text.substr(0, 512 + 1024 + 513));
}

TEST_F(ShardOriginTest, AFailedWindowIsReadAgainWithoutTheOthers) {
    for (const char* key : {"a.tar", "b.tar", "c.tar"}) {
        server_.put("b", std::string{"set/"} + key, shard(0, 4, 10));
    }
    server_.add_fault(test::parse_fault("operation=get,key=set/b.tar,status=503,times=4").value());
    EXPECT_EQ(test::list_objects(*origin_)->size(), 12U);
    EXPECT_EQ(server_.request_count("get"), 2U + 5U);
    EXPECT_EQ(server_.request_count("list"), 1U);
}

TEST_F(ShardOriginTest, TheListingFailsWhenAWindowKeepsFailing) {
    server_.put("b", "set/a.tar", shard(0, 4, 10));
    server_.add_fault(test::parse_fault("operation=get,status=503,times=-1").value());
    const Error error = list_error();
    EXPECT_EQ(error.code, ErrorCode::kUnavailable);
    EXPECT_THAT(error.message, HasSubstr("'a.tar'"));
    EXPECT_EQ(server_.request_count("get"), 3U * kWindowTriesMax);
    server_.clear_faults();
    server_.clear_requests();
    server_.add_fault(test::parse_fault("operation=get,status=403,times=-1").value());
    EXPECT_EQ(list_error().code, ErrorCode::kForbidden);
    EXPECT_EQ(server_.request_count("get"), 1U);
}

TEST_F(ShardOriginTest, RowsAreListedWithoutReading) {
    origin_ = open("s3://b/set", domain::SampleFormat::kRecords, {4, ".bin"});
    server_.put("b", "set/a.bin", "onesTwosTres");
    server_.put("b", "set/readme.html", "x");
    const auto samples = test::list_objects(*origin_).value();
    ASSERT_EQ(samples.size(), 3U);
    EXPECT_EQ(server_.request_count("get"), 0U);
    EXPECT_EQ(samples[1].key, "a.bin/000000001");
    EXPECT_EQ(test::text_of(read(samples[1]).value()), "Twos");
    EXPECT_EQ(test::text_of(read(samples[0]).value()), "ones");
    server_.put("b", "set/b.bin", "onesT");
    const Error rest = list_error();
    EXPECT_EQ(rest.code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(rest.message, HasSubstr("'b.bin' has 5 bytes, which are 1 rows of 4 bytes"));
}

TEST_F(ShardOriginTest, RowsAreListedInStepsThatAStopEnds) {
    const test::TempFolder folder;
    std::ofstream{folder.path() + "/a.bin"} << std::string(20'000, 'x');
    origin_ = open("file://" + folder.path(), domain::SampleFormat::kRecords, {1});
    std::vector<std::uint64_t> counts;
    EXPECT_EQ(
        origin_->list([&](std::uint64_t count) { counts.push_back(count); }, {})->size(), 20'000U);
    EXPECT_GE(std::set<std::uint64_t>(counts.begin(), counts.end()).size(), 5U);
    std::stop_source stop;
    std::uint64_t last = 0;
    const auto stopped = origin_->list(
        [&](std::uint64_t count) {
            last = count;
            if (count > 1) {
                stop.request_stop();
            }
        },
        stop.get_token());
    ASSERT_FALSE(stopped.has_value());
    EXPECT_EQ(stopped.error().code, ErrorCode::kCancelled);
    EXPECT_LT(last, 5'000U);
}

// In a listing, a row takes 16 bytes, its key 15 and its place some 40.
TEST_F(ShardOriginTest, RowsThatNeedMoreThanTheMemoryAreRefused) {
    const test::TempFolder folder;
    std::ofstream{folder.path() + "/a.bin"} << std::string(100'000, 'x');
    const auto list = [&](std::optional<std::uint64_t> memory_max) {
        auto files = make_origin(
            "file://" + folder.path(), {}, [](const char*) { return nullptr; }, clock_, 1);
        return make_shard_origin(
                   *std::move(files), {domain::SampleFormat::kRecords, {1}}, {}, 1, {}, memory_max)
            ->list({}, {});
    };
    EXPECT_EQ(list(std::nullopt)->size(), 100'000U);
    EXPECT_EQ(list(20'000'000)->size(), 100'000U);
    const auto refused = list(5'000'000);
    ASSERT_FALSE(refused.has_value());
    const Error& error = refused.error();
    EXPECT_EQ(error.code, ErrorCode::kResourceExhausted);
    EXPECT_THAT(error.message, HasSubstr("100000 rows need at least"));
    EXPECT_THAT(error.message, HasSubstr("sidecar.resources.limits.memory"));
}

TEST_F(ShardOriginTest, ShardsWithoutSamplesAreNamed) {
    server_.put("b", "set/a.tar", "");
    server_.put("b", "set/b.tar", tar_end());
    EXPECT_THAT(
        list_error().message, HasSubstr("the dataset is empty: its 2 shards have no samples"));
    origin_ = open("s3://b/set", domain::SampleFormat::kMegatron);
    server_.put("b", "set/c4.bin", "");
    server_.put("b", "set/c4.idx", test::megatron_text({0, 0}).text());
    EXPECT_THAT(list_error().message, HasSubstr("its 1 shards have no samples"));
}

TEST_F(ShardOriginTest, SequencesOfMegatronAreRangesOfTheBinFile) {
    origin_ = open("s3://b/set", domain::SampleFormat::kMegatron);
    server_.put("b", "set/c4.bin", "aabbccddee");
    server_.put("b", "set/c4.idx", test::megatron_text({3, 0, 2}).text());
    const auto samples = test::list_objects(*origin_).value();
    ASSERT_EQ(samples.size(), 3U);
    EXPECT_EQ(server_.request_count("get"), 1U) << "the index";
    EXPECT_EQ(samples[2].key, "c4.bin/000000002.uint16");
    EXPECT_EQ(test::text_of(read(samples[0]).value()), "aabbcc");
    EXPECT_EQ(test::text_of(read(samples[1]).value()), "");
    EXPECT_EQ(test::text_of(read(samples[2]).value()), "ddee");
}

TEST_F(ShardOriginTest, AnEmptyFirstSequenceIsReadWithOneByte) {
    origin_ = open("s3://b/set", domain::SampleFormat::kMegatron);
    server_.put("b", "set/c4.bin", "aa");
    server_.put("b", "set/c4.idx", test::megatron_text({0, 1, 0}).text());
    const auto samples = test::list_objects(*origin_).value();
    ASSERT_EQ(samples.size(), 3U);
    for (const std::size_t empty : {0U, 2U}) {
        EXPECT_EQ(test::text_of(read(samples[empty]).value()), "");
    }
    server_.put("b", "set/c4.bin", "bb");
    EXPECT_EQ(read(samples[0]).error().code, ErrorCode::kConflict);
}

// The ETags of the samples contain only the .bin file's ETag.
TEST_F(ShardOriginTest, AChangedIndexOfMegatronIsReadAgain) {
    origin_ = open("s3://b/set", domain::SampleFormat::kMegatron);
    server_.put("b", "set/c4.bin", "aabbccddee");
    server_.put("b", "set/c4.idx", test::megatron_text({3, 2}).text());
    const auto bytes = domain::encode_manifest(test::list_objects(*origin_).value()).value();
    const auto known = domain::ManifestView::open(bytes).value();
    server_.put("b", "set/c4.idx", test::megatron_text({1, 4}).text());
    const auto again = origin_->list_again(known, {}, {}).value().objects();
    ASSERT_EQ(again.size(), 2U);
    EXPECT_EQ(again[0].size_bytes, 2U);
    server_.put("b", "set/c4.idx", test::megatron_text({1, 3}).text());
    EXPECT_EQ(list_error().code, ErrorCode::kCorruption) << "an index of another .bin file";
}

TEST_F(ShardOriginTest, PayloadsOfTfRecordsAreChecked) {
    origin_ = open("s3://b/set", domain::SampleFormat::kTfRecord);
    std::string text = test::tfrecord("one") + test::tfrecord("") + test::tfrecord("three");
    server_.put("b", "set/a.tfrecord", text);
    const auto samples = test::list_objects(*origin_).value();
    ASSERT_EQ(samples.size(), 3U);
    EXPECT_EQ(server_.request_count("get"), 1U);
    EXPECT_EQ(test::text_of(read(samples[0]).value()), "one");
    EXPECT_EQ(test::text_of(read(samples[1]).value()), "");
    EXPECT_EQ(test::text_of(read(samples[2]).value()), "three");
    text[13] ^= 1;
    server_.put("b", "set/a.tfrecord", text);
    const auto damaged = test::list_objects(*origin_).value();
    const auto bytes = read(damaged[0]);
    ASSERT_FALSE(bytes.has_value());
    EXPECT_EQ(bytes.error().code, ErrorCode::kCorruption);
    EXPECT_THAT(bytes.error().message, HasSubstr("'a.tfrecord/000000000' at byte 12"));
    EXPECT_EQ(test::text_of(read(damaged[2]).value()), "three");
}

TEST_F(ShardOriginTest, UnchangedTfRecordsAreNotIndexedAgain) {
    origin_ = open("s3://b/set", domain::SampleFormat::kTfRecord);
    for (const char* key : {"set/a.tfrecord", "set/b.tfrecord"}) {
        server_.put("b", key, test::tfrecord("one") + test::tfrecord("two"));
    }
    const auto bytes = domain::encode_manifest(test::list_objects(*origin_).value()).value();
    const auto known = domain::ManifestView::open(bytes).value();
    server_.clear_requests();
    server_.put("b", "set/b.tfrecord", test::tfrecord("three"));
    EXPECT_EQ(origin_->list_again(known, {}, {})->size(), 3U);
    EXPECT_EQ(server_.request_count("get"), 1U);
}

}  // namespace
}  // namespace stoker::sidecar
