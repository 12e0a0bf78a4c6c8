#include "sidecar/origin/chunk_origin.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/crc32c.h"
#include "common/base/prng.h"
#include "common/domain/manifest.h"
#include "common/domain/manifest_writer.h"
#include "tests/support/fake_s3.h"
#include "tests/support/list_objects.h"
#include "tests/support/test_seed.h"
#include "tests/unit/sidecar/pack/packed_folder.h"

namespace stoker::sidecar {
namespace {

using testing::HasSubstr;

class ChunkOriginTest : public testing::Test {
protected:
    ChunkOriginTest() {
        server_.make_bucket("b");
        folder_.origin_options.endpoint = server_.endpoint();
        const auto packed = folder_.pack("s3://b/packed");
        EXPECT_TRUE(packed.has_value()) << packed.error().message;
        chunk_count_ = packed->chunk_count;
        origin_ = folder_.open("s3://b/packed", domain::SampleFormat::kChunks);
        server_.clear_requests();
    }

    std::vector<domain::ListedObject> listing() {
        auto listed = test::list_objects(*origin_);
        EXPECT_TRUE(listed.has_value()) << listed.error().message;
        return listed.value_or(std::vector<domain::ListedObject>{});
    }

    static OriginFetch wanting(const domain::ListedObject& sample) {
        return {sample.key, sample.etag, sample.size_bytes};
    }

    static std::vector<test::FetchFuture> start_together(
        Origin& origin, const std::vector<domain::ListedObject>& samples) {
        std::vector<test::FetchFuture> futures;
        std::vector<OriginRequest> requests;
        for (const auto& sample : samples) {
            auto promise = std::make_shared<std::promise<Result<OriginBytes>>>();
            futures.push_back(promise->get_future());
            requests.push_back({wanting(sample), [promise](OriginAnswer answer) {
                                    promise->set_value(std::move(answer.bytes));
                                }});
        }
        origin.fetch_together(std::move(requests));
        return futures;
    }

    // Replaces a chunk by its bytes after `change`.
    void change_chunk(const std::string& key, const std::function<void(std::string&)>& change) {
        const auto chunks = folder_.open("s3://b/packed");
        const auto listed = test::list_objects(*chunks).value();
        for (const auto& object : listed) {
            if (object.key == key) {
                std::string text = test::text_of(test::fetch_now(*chunks, wanting(object)).value());
                change(text);
                server_.put("b", "packed/" + key, text);
            }
        }
    }

    test::FakeS3 server_;
    test::PackedFolder folder_;
    std::uint32_t chunk_count_ = 0;
    std::unique_ptr<Origin> origin_;
};

TEST_F(ChunkOriginTest, IdsAndLabelsEqualThoseOfTheLooseFiles) {
    const auto loose = domain::encode_manifest(
        test::list_objects(*folder_.open("file://" + folder_.source())).value());
    const auto packed = domain::encode_manifest(listing());
    const auto one = domain::ManifestView::open(*loose).value();
    const auto other = domain::ManifestView::open(*packed).value();
    ASSERT_EQ(one.sample_count(), other.sample_count());
    for (std::uint64_t id = 0; id < one.sample_count(); ++id) {
        const auto a = one.sample(domain::SampleId{id});
        const auto b = other.sample(domain::SampleId{id});
        EXPECT_EQ(a.key, b.key);
        EXPECT_EQ(a.size_bytes, b.size_bytes);
        EXPECT_EQ(a.label, b.label);
    }
}

TEST_F(ChunkOriginTest, ListingGetsTheIndexAndAChunksBeginAndAFetchGetsItsRangeOnly) {
    const auto samples = listing();
    EXPECT_EQ(server_.request_count("list"), 1U);
    EXPECT_EQ(server_.request_count("get"), 2U);
    EXPECT_EQ(server_.requests().back().body_bytes, domain::kChunkFixedBytes);
    server_.clear_requests();
    const auto largest = std::ranges::max(samples, {}, &domain::ListedObject::size_bytes);
    const auto bytes = test::fetch_now(*origin_, wanting(largest)).value();
    EXPECT_EQ(test::text_of(bytes), folder_.samples.at(largest.key));
    EXPECT_GT(bytes.request_time, Duration::zero());
    const auto asked = server_.requests();
    ASSERT_EQ(asked.size(), 1U);
    EXPECT_EQ(asked[0].status, 206);
    EXPECT_EQ(asked[0].body_bytes, largest.size_bytes);
}

TEST_F(ChunkOriginTest, WithoutAnIndexTheHeadersAreRead) {
    const auto with = listing();
    server_.remove("b", "packed/index");
    server_.clear_requests();
    EXPECT_EQ(listing(), with);
    EXPECT_EQ(server_.request_count("get"), chunk_count_);
}

TEST_F(ChunkOriginTest, IndexOfOtherChunksIsNotBelieved) {
    const auto with = listing();
    server_.put("b", "packed/index", "no index");
    EXPECT_EQ(listing(), with);
}

// The samples of both packs have the same names and lengths, but different bytes.
TEST_F(ChunkOriginTest, IndexOfAnotherPackIsNotUsed) {
    const auto with = listing();
    for (auto [key, text] : folder_.samples) {
        std::ranges::for_each(text, [](char& byte) { byte = char(~byte); });
        folder_.add(key, text);
    }
    ASSERT_TRUE(folder_.pack("s3://b/other").has_value());
    const auto other = folder_.open("s3://b/other");
    const auto objects = test::list_objects(*other).value();
    const auto index = std::ranges::find(objects, "index", &domain::ListedObject::key);
    server_.put(
        "b", "packed/index", test::text_of(test::fetch_now(*other, wanting(*index)).value()));
    EXPECT_EQ(listing(), with);
}

TEST_F(ChunkOriginTest, ChunkThatThePackDoesNotHaveIsAnError) {
    server_.put("b", "packed/" + domain::chunk_key(chunk_count_), std::string(100, 'x'));
    EXPECT_FALSE(test::list_objects(*origin_).has_value());
}

TEST_F(ChunkOriginTest, ProgressCountsObjectsThenSamples) {
    server_.remove("b", "packed/index");
    std::vector<std::uint64_t> told;
    const auto listed =
        test::list_objects(*origin_, [&](auto count) { told.push_back(count); }, {});
    ASSERT_TRUE(listed.has_value()) << listed.error().message;
    ASSERT_GE(told.size(), 2U);
    EXPECT_EQ(told.front(), chunk_count_);
    EXPECT_EQ(told.back(), folder_.samples.size());
}

TEST_F(ChunkOriginTest, StoppedListingIsCancelled) {
    std::stop_source stop;
    const auto listed = test::list_objects(
        *origin_, [&](auto) { stop.request_stop(); }, stop.get_token());
    ASSERT_FALSE(listed.has_value());
    EXPECT_EQ(listed.error().code, ErrorCode::kCancelled);
}

TEST_F(ChunkOriginTest, MissingChunkIsAnErrorThatSaysSo) {
    server_.remove("b", "packed/chunk-00000001");
    const auto listed = test::list_objects(*origin_);
    ASSERT_FALSE(listed.has_value());
    EXPECT_EQ(listed.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(listed.error().message, HasSubstr("s3://b/packed"));
}

TEST_F(ChunkOriginTest, EmptySampleIsReadAndItsChunkChecked) {
    const auto samples = listing();
    const auto empty = std::ranges::find(samples, 0U, &domain::ListedObject::size_bytes);
    ASSERT_NE(empty, samples.end());
    EXPECT_EQ(test::fetch_now(*origin_, wanting(*empty)).value().payload.size(), 0U);
    const auto place = domain::parse_place(empty->etag).value();
    change_chunk(domain::chunk_key(place.chunk), [](std::string& text) { text += "x"; });
    EXPECT_EQ(test::fetch_now(*origin_, wanting(*empty)).error().code, ErrorCode::kConflict);
}

TEST_F(ChunkOriginTest, ReplacedChunkIsAConflictOfItsSamples) {
    const auto samples = listing();
    change_chunk("chunk-00000000", [](std::string& text) { text.back() = char(~text.back()); });
    std::size_t conflicts = 0;
    for (const auto& sample : samples) {
        const auto bytes = test::fetch_now(*origin_, wanting(sample));
        const bool is_there = domain::parse_place(sample.etag)->chunk == 0;
        EXPECT_EQ(bytes.has_value(), !is_there);
        conflicts += !bytes && bytes.error().code == ErrorCode::kConflict ? 1 : 0;
    }
    EXPECT_GT(conflicts, 0U);
}

TEST_F(ChunkOriginTest, BytesThatNeverMatchTheirChecksumAreCorrupt) {
    const auto samples = listing();
    server_.add_fault(
        test::parse_fault("operation=get,key=packed/chunk-*,corrupt=1,times=9").value());
    const auto bytes = test::fetch_now(*origin_, wanting(samples.back()));
    ASSERT_FALSE(bytes.has_value());
    EXPECT_EQ(bytes.error().code, ErrorCode::kCorruption);
    EXPECT_THAT(bytes.error().message, HasSubstr(samples.back().key));
}

TEST_F(ChunkOriginTest, BytesDamagedOnceAreFetchedAgain) {
    const auto samples = listing();
    server_.add_fault(
        test::parse_fault("operation=get,key=packed/chunk-*,corrupt=1,times=1").value());
    const auto bytes = test::fetch_now(*origin_, wanting(samples.back()));
    EXPECT_EQ(test::text_of(*bytes), folder_.samples.at(samples.back().key));
    EXPECT_EQ(bytes->requests, 2U);
}

// The sample is read in three parts. Three attempts are allowed; the second one reads all parts
// again.
TEST_F(ChunkOriginTest, LargeSampleDamagedOnceIsFetchedAgain) {
    const std::string text(20U << 20U, 'y');
    folder_.add("large.bin", text);
    ASSERT_TRUE(folder_.pack("s3://b/large").has_value());
    const auto origin = folder_.open("s3://b/large", domain::SampleFormat::kChunks);
    const auto samples = test::list_objects(*origin).value();
    const auto large = std::ranges::find(samples, "large.bin", &domain::ListedObject::key);
    server_.add_fault(
        test::parse_fault("operation=get,key=large/chunk-*,corrupt=1,times=1").value());
    const auto bytes = test::fetch_now(*origin, wanting(*large));
    ASSERT_TRUE(bytes.has_value()) << bytes.error().message;
    EXPECT_EQ(test::text_of(*bytes), text);
    EXPECT_EQ(bytes->requests, 6U);
    EXPECT_EQ(bytes->attempts, 2U);
}

TEST_F(ChunkOriginTest, SamplesAskedTogetherAreOneRequestForEachChunk) {
    const auto samples = listing();
    server_.clear_requests();
    std::uint32_t requests = 0;
    auto fetches = start_together(*origin_, samples);
    for (std::size_t i = 0; i < samples.size(); ++i) {
        const auto bytes = fetches[i].get();
        ASSERT_TRUE(bytes.has_value()) << bytes.error().message;
        EXPECT_EQ(test::text_of(*bytes), folder_.samples.at(samples[i].key));
        EXPECT_EQ(bytes->stored_crc32c, crc32c(bytes->payload));
        requests += bytes->requests;
    }
    EXPECT_EQ(server_.request_count("get"), chunk_count_);
    EXPECT_EQ(requests, chunk_count_);
}

TEST_F(ChunkOriginTest, FetchesOfRandomSamplesTogetherReturnEachSamplesBytes) {
    Prng prng{test::seed()};
    const auto samples = listing();
    for (int round = 0; round < 20; ++round) {
        std::vector<domain::ListedObject> some;
        std::ranges::copy_if(samples, std::back_inserter(some), [&](const auto& /*sample*/) {
            return prng.below(4) == 0;
        });
        auto fetches = start_together(*origin_, some);
        for (std::size_t i = 0; i < some.size(); ++i) {
            const auto bytes = fetches[i].get();
            ASSERT_TRUE(bytes.has_value()) << bytes.error().message;
            EXPECT_EQ(test::text_of(*bytes), folder_.samples.at(some[i].key));
        }
    }
}

TEST_F(ChunkOriginTest, FailedRequestFailsItsSamplesAlone) {
    const auto samples = listing();
    server_.add_fault(
        test::parse_fault("operation=get,key=packed/chunk-00000001,status=403,times=-1").value());
    auto fetches = start_together(*origin_, samples);
    for (std::size_t i = 0; i < samples.size(); ++i) {
        const auto bytes = fetches[i].get();
        EXPECT_EQ(bytes.has_value(), domain::parse_place(samples[i].etag)->chunk != 1);
        if (!bytes) {
            EXPECT_EQ(bytes.error().code, ErrorCode::kForbidden);
            EXPECT_THAT(bytes.error().message, HasSubstr(samples[i].key));
        }
    }
}

TEST_F(ChunkOriginTest, FailureOfASharedRequestCountsOnce) {
    const auto samples = listing();
    server_.add_fault(
        test::parse_fault("operation=get,key=packed/chunk-00000001,status=403,times=-1").value());
    server_.clear_requests();
    std::vector<std::future<std::uint32_t>> failed;
    std::vector<OriginRequest> requests;
    for (const auto& sample : samples) {
        auto promise = std::make_shared<std::promise<std::uint32_t>>();
        failed.push_back(promise->get_future());
        requests.push_back({wanting(sample), [promise](const OriginAnswer& answer) {
                                promise->set_value(answer.bytes ? 0 : answer.failed_requests);
                            }});
    }
    origin_->fetch_together(std::move(requests));
    std::uint32_t sum = 0;
    for (auto& future : failed) {
        sum += future.get();
    }
    const auto asked = server_.requests();
    const auto refused = std::ranges::count(asked, 403, [](const auto& it) { return it.status; });
    EXPECT_EQ(sum, refused);
    EXPECT_GT(
        std::ranges::count_if(
            samples,
            [](const auto& sample) { return domain::parse_place(sample.etag)->chunk == 1; }),
        refused);
}

TEST_F(ChunkOriginTest, SamplesThatWaitShareTheNextRequest) {
    const auto samples = listing();
    folder_.origin_options.max_in_flight = 1;
    const auto origin = folder_.open("s3://b/packed", domain::SampleFormat::kChunks);
    server_.add_fault(
        test::parse_fault("operation=get,key=packed/chunk-*,delay_ms=1000,times=1").value());
    server_.clear_requests();
    std::vector<test::FetchFuture> fetches;
    for (const auto& sample : samples) {
        fetches.push_back(test::start_fetch(*origin, wanting(sample)));
    }
    for (auto& fetch : fetches) {
        EXPECT_TRUE(fetch.get().has_value());
    }
    EXPECT_LE(server_.request_count("get"), chunk_count_ + 2)
        << "the first, what lies before and behind it in its chunk, and the other chunks";
}

TEST_F(ChunkOriginTest, SamplesOfADamagedRequestAreFetchedAgain) {
    const auto samples = listing();
    server_.add_fault(
        test::parse_fault("operation=get,key=packed/chunk-00000001,corrupt=1,times=1").value());
    auto fetches = start_together(*origin_, samples);
    for (std::size_t i = 0; i < samples.size(); ++i) {
        auto bytes = fetches[i].get();
        ASSERT_TRUE(bytes.has_value());
        if (bytes->stored_crc32c != crc32c(bytes->payload)) {
            OriginFetch again = wanting(samples[i]);
            again.attempts = bytes->attempts;
            bytes = test::fetch_now(*origin_, again);
        }
        EXPECT_EQ(test::text_of(*bytes), folder_.samples.at(samples[i].key));
    }
}

TEST_F(ChunkOriginTest, RequestTooLargeForItsOriginIsReadInSamples) {
    const auto samples = listing();
    folder_.origin_options.object_bytes_max = kib(1);
    const auto origin = make_chunk_origin(folder_.open("s3://b/packed"), {});
    auto fetches = start_together(*origin, samples);
    for (std::size_t i = 0; i < samples.size(); ++i) {
        EXPECT_EQ(test::text_of(fetches[i].get().value()), folder_.samples.at(samples[i].key));
    }
}

TEST_F(ChunkOriginTest, ClosingAnswersAllFetches) {
    const auto samples = listing();
    folder_.origin_options.max_in_flight = 2;
    auto origin = folder_.open("s3://b/packed", domain::SampleFormat::kChunks);
    server_.add_fault(
        test::parse_fault("operation=get,key=packed/chunk-*,delay_ms=3000,times=-1").value());
    auto fetches = start_together(*origin, samples);
    origin.reset();
    for (auto& fetch : fetches) {
        EXPECT_EQ(fetch.get().error().code, ErrorCode::kCancelled);
    }
}

TEST_F(ChunkOriginTest, RefusesEtagsThatNameNoRangeOfAChunk) {
    EXPECT_EQ(
        test::fetch_now(*origin_, {"a", "d41d8cd98f00b204", 3}).error().code,
        ErrorCode::kInvalidArgument);
    EXPECT_EQ(
        test::fetch_now(*origin_, {"a", "chunk:0:100:0:200:e", 101}).error().code,
        ErrorCode::kInvalidArgument);
}

TEST_F(ChunkOriginTest, SliceOfALargeObjectIsCutIntoParts) {
    std::string text(40U << 20U, '\0');
    for (std::size_t i = 0; i < text.size(); i += 101) {
        text[i] = static_cast<char>(i / 101);
    }
    const std::string etag = server_.put("b", "large", text);
    const auto objects = folder_.open("s3://b");
    OriginFetch wanted{"large", etag, std::uint64_t{20} << 20U};
    wanted.slice = OriginSlice{7'000'001, text.size()};
    const auto bytes = test::fetch_now(*objects, wanted);
    ASSERT_TRUE(bytes.has_value()) << bytes.error().message;
    EXPECT_EQ(test::text_of(*bytes), text.substr(7'000'001, wanted.size_bytes));
}

TEST_F(ChunkOriginTest, SlicesOfASampleHaveItsChecksum) {
    const auto samples = listing();
    const auto sample = std::ranges::max(samples, {}, &domain::ListedObject::size_bytes);
    const std::string& text = folder_.samples.at(sample.key);
    OriginFetch wanted{sample.key, sample.etag, sample.size_bytes - 10};
    wanted.slice = OriginSlice{7, sample.size_bytes};
    const auto bytes = test::start_fetch(*origin_, wanted).get();
    ASSERT_TRUE(bytes.has_value()) << bytes.error().message;
    EXPECT_EQ(test::text_of(*bytes), text.substr(7, text.size() - 10));
    EXPECT_EQ(bytes->stored_crc32c, crc32c(std::as_bytes(std::span{text})));
}

TEST_F(ChunkOriginTest, DamagedFileInADirectoryIsCorrupt) {
    ASSERT_TRUE(folder_.pack().has_value());
    const auto chunk = folder_.target_file("chunk-00000000");
    std::string text = test::file_text(chunk);
    text.back() = char(~text.back());
    test::write_file(chunk, text);
    const auto origin = folder_.open("file://" + folder_.target(), domain::SampleFormat::kChunks);
    std::size_t corrupt = 0;
    const auto listed = test::list_objects(*origin).value();
    for (const auto& sample : listed) {
        const auto bytes = test::fetch_now(*origin, wanting(sample));
        corrupt += !bytes && bytes.error().code == ErrorCode::kCorruption ? 1 : 0;
    }
    EXPECT_EQ(corrupt, 1U);
}

}  // namespace
}  // namespace stoker::sidecar
