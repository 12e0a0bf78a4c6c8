#include "sidecar/files/sample_reads.h"

#include <filesystem>
#include <future>
#include <optional>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "tests/support/manual_clock.h"
#include "tests/unit/sidecar/files/files_world.h"

namespace stoker::files {
namespace {

constexpr std::uint64_t kSampleBytes = 100'000;
constexpr std::uint64_t kPart = 4096;
constexpr std::uint64_t kCopiedBytesMax = 2 * kSampleBytes;

using Bytes = std::vector<std::byte>;

class SampleReadsTest : public ::testing::Test {
protected:
    void open(const std::vector<domain::ListedObject>& objects, bool guest, std::size_t threads) {
        data_.emplace(objects, guest);
        pool_.emplace(socket_path_, clock_, threads);
        reads_.emplace(data_->cached, data_->files, origin_, *pool_, clock_, kCopiedBytesMax);
    }

    // A manifest of samples a, b, c and so on.
    void open_samples(std::size_t count, bool guest) {
        std::vector<domain::ListedObject> objects;
        for (std::size_t at = 0; at < count; ++at) {
            objects.push_back({std::string(1, static_cast<char>('a' + at)), kSampleBytes, "e"});
        }
        open(objects, guest, 1);
    }

    // An object in blocks of these sizes; each block's ETag says that blocks have `block_bytes`.
    void open_blocks(const std::vector<std::uint64_t>& sizes, std::uint64_t block_bytes) {
        std::vector<domain::ListedObject> blocks;
        const std::uint64_t total = block_bytes * sizes.size();
        for (std::uint32_t at = 0; at < sizes.size(); ++at) {
            blocks.push_back(
                {domain::block_key("a", at),
                 sizes[at],
                 domain::encode_block_place({at, block_bytes, total, "e"})});
        }
        open(blocks, false, 1);
        for (std::uint64_t at = 0; at < sizes.size(); ++at) {
            data_->store(at, sizes[at]);
        }
    }

    std::optional<Bytes> read(std::uint64_t id, std::uint64_t offset, std::uint64_t length) {
        std::promise<std::optional<Bytes>> promise;
        const auto object = domain::object_of(data_->files->manifest(), domain::SampleId{id});
        reads_->read(object, offset, length, [&](auto bytes) {
            promise.set_value(
                bytes ? std::optional{Bytes{bytes->begin(), bytes->end()}} : std::nullopt);
        });
        return promise.get_future().get();
    }

    testing::ManualClock clock_;
    std::string socket_path_ = "/nowhere";
    EmptyOrigin origin_;
    std::optional<LocalDataset> data_;
    std::optional<SampleReads> reads_;
    std::optional<attached::FetchPool> pool_;
};

TEST_F(SampleReadsTest, AGuestCopiesASampleOnceForAllReadsOfItsParts) {
    open_samples(1, true);
    const Bytes payload = data_->store(0, kSampleBytes);
    EXPECT_EQ(read(0, 0, kPart), Bytes(payload.begin(), payload.begin() + kPart));
    data_->forget(0);
    EXPECT_EQ(read(0, kPart, kSampleBytes - kPart), Bytes(payload.begin() + kPart, payload.end()));
    EXPECT_EQ(data_->cached.counts().hits, 1U);
    EXPECT_EQ(data_->cached.counts().fetched, 0U);
    EXPECT_FALSE(read(0, 0, kPart)) << "the copy goes once it has been read";
}

TEST_F(SampleReadsTest, OldCopiesMakeRoom) {
    open_samples(3, true);
    for (std::uint64_t id = 0; id < 3; ++id) {
        data_->store(id, kSampleBytes);
        EXPECT_TRUE(read(id, 0, kPart));
        data_->forget(id);
    }
    EXPECT_FALSE(read(0, kPart, kPart));
    EXPECT_TRUE(read(1, kPart, kPart));
    EXPECT_TRUE(read(2, kPart, kPart));
}

TEST_F(SampleReadsTest, ASampleReadFromAMappedSegmentIsNotCopied) {
    open_samples(1, false);
    data_->store(0, kSampleBytes, domain::SegmentClass::kWindow);
    EXPECT_TRUE(read(0, 0, kPart));
    EXPECT_TRUE(read(0, kPart, kPart));
    data_->forget(0);
    EXPECT_FALSE(read(0, 2 * kPart, kPart));
}

TEST_F(SampleReadsTest, AShortMiddleBlockHasNoBytesBehindItsEnd) {
    open_blocks({kPart, 10, kPart}, kPart);
    ASSERT_EQ(domain::object_of(data_->files->manifest(), domain::SampleId{0}).sample_count, 3U);
    EXPECT_FALSE(read(0, kPart, 11));
    EXPECT_FALSE(read(0, 0, 3 * kPart));
    EXPECT_TRUE(read(0, kPart, 10));
}

TEST_F(SampleReadsTest, AnObjectInTinyBlocksHasNoBytes) {
    open_blocks({1, 1, 1, 1}, 1);
    EXPECT_FALSE(read(0, 0, 4));
}

TEST_F(SampleReadsTest, AnUnreadablePageFailsAReadOfSeveralBlocks) {
    open_blocks({kPart, kPart}, kPart);
    EXPECT_TRUE(read(0, 0, 2 * kPart));
    std::filesystem::resize_file(data_->node.segment_path(data_->segment), 0);
    EXPECT_FALSE(read(0, 0, 2 * kPart));
}

TEST_F(SampleReadsTest, AfterAStopReadsThatWaitStayUnanswered) {
    open({{"a", kSampleBytes, "e"}}, false, 0);
    int answers = 0;
    const auto object = domain::object_of(data_->files->manifest(), domain::SampleId{0});
    reads_->read(object, 0, kPart, [&](auto /*bytes*/) { ++answers; });
    reads_->stop();
    pool_.reset();
    EXPECT_EQ(answers, 0);
    EXPECT_EQ(origin_.fetches, 0);
}

}  // namespace
}  // namespace stoker::files
