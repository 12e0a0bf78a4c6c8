#include "sidecar/pack/pack_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/support/fake_s3.h"
#include "tests/support/list_objects.h"
#include "tests/support/test_seed.h"
#include "tests/unit/sidecar/pack/packed_folder.h"

namespace stoker::sidecar {
namespace {

namespace fs = std::filesystem;
using test::file_text;
using test::PackedFolder;
using testing::HasSubstr;

std::map<std::string, ino_t> chunk_files(const PackedFolder& folder) {
    std::map<std::string, ino_t> files;
    for (const auto& entry : fs::directory_iterator{folder.target()}) {
        struct stat status {};

        ::stat(entry.path().c_str(), &status);
        if (entry.path().filename() != "index") {
            files[entry.path().filename()] = status.st_ino;
        }
    }
    return files;
}

void flip(const fs::path& path, std::size_t at) {
    std::string text = file_text(path);
    text.at(at) = static_cast<char>(~text.at(at));
    test::write_file(path, text);
}

TEST(PackRun, PackedSamplesReadBackUnderTheirNames) {
    PackedFolder folder{200, test::seed()};
    const auto packed = folder.pack();
    ASSERT_TRUE(packed.has_value()) << packed.error().message;
    EXPECT_EQ(packed->samples, 200U);
    EXPECT_GT(packed->chunk_count, 3U);
    EXPECT_EQ(packed->verified, packed->chunk_count);
    const auto origin = folder.open("file://" + folder.target(), domain::SampleFormat::kChunks);
    const auto listed = test::list_objects(*origin).value();
    ASSERT_EQ(listed.size(), folder.samples.size());
    for (const auto& sample : listed) {
        const auto bytes = test::fetch_now(*origin, {sample.key, sample.etag, sample.size_bytes});
        ASSERT_TRUE(bytes.has_value()) << bytes.error().message;
        EXPECT_EQ(test::text_of(*bytes), folder.samples.at(sample.key));
        EXPECT_TRUE(bytes->stored_crc32c.has_value());
    }
}

TEST(PackRun, RebuiltIndexIsByteIdentical) {
    PackedFolder folder;
    ASSERT_TRUE(folder.pack().has_value());
    const std::string index = file_text(folder.target_file("index"));
    fs::remove(folder.target_file("index"));
    const auto read = folder.open("file://" + folder.target());
    const auto write = folder.writer("file://" + folder.target());
    const auto rebuilt = rebuild_index({*read, *write}, {});
    ASSERT_TRUE(rebuilt.has_value()) << rebuilt.error().message;
    EXPECT_EQ(rebuilt->samples, 200U);
    EXPECT_EQ(file_text(folder.target_file("index")), index);
    fs::remove(folder.target_file("chunk-00000001"));
    EXPECT_FALSE(rebuild_index({*read, *write}, {}).has_value());
}

// A kill leaves some chunks and no index.
TEST(PackRun, SecondRunWritesOnlyWhatIsMissing) {
    PackedFolder folder;
    ASSERT_TRUE(folder.pack().has_value());
    const std::string index = file_text(folder.target_file("index"));
    const std::string lost = file_text(folder.target_file("chunk-00000002"));
    fs::remove(folder.target_file("index"));
    fs::remove(folder.target_file("chunk-00000002"));
    const auto before = chunk_files(folder);
    const auto again = folder.pack();
    ASSERT_TRUE(again.has_value()) << again.error().message;
    EXPECT_EQ(again->written, 1U);
    EXPECT_EQ(again->found, again->chunk_count - 1);
    auto after = chunk_files(folder);
    EXPECT_EQ(file_text(folder.target_file("chunk-00000002")), lost);
    after.erase("chunk-00000002");
    EXPECT_EQ(after, before);
    EXPECT_EQ(file_text(folder.target_file("index")), index);
}

TEST(PackRun, StoppedRunLeavesNoIndexAndGoesOnLater) {
    PackedFolder folder;
    folder.options.threads = 1;
    const auto stopped = folder.pack("", [&](const PackProgress& progress) {
        if (progress.written == 2) {
            folder.stop.request_stop();
        }
    });
    ASSERT_FALSE(stopped.has_value());
    EXPECT_EQ(stopped.error().code, ErrorCode::kCancelled);
    EXPECT_EQ(chunk_files(folder).size(), 2U);
    EXPECT_FALSE(fs::exists(folder.target_file("index")));
    folder.stop = {};
    const auto again = folder.pack();
    ASSERT_TRUE(again.has_value()) << again.error().message;
    EXPECT_EQ(again->found, 2U);
    EXPECT_EQ(again->written + 2, again->chunk_count);
}

TEST(PackRun, ChunksOfAnotherPackAreNotOverwritten) {
    PackedFolder folder;
    ASSERT_TRUE(folder.pack().has_value());
    const auto before = chunk_files(folder);
    folder.options.settings.seed = 9;
    const auto other_seed = folder.pack();
    ASSERT_FALSE(other_seed.has_value());
    EXPECT_EQ(other_seed.error().code, ErrorCode::kAlreadyExists);
    EXPECT_THAT(other_seed.error().message, HasSubstr("another pack"));
    folder.options.settings.seed = 0;
    folder.add("class0/new.bin", "new");
    EXPECT_EQ(folder.pack().error().code, ErrorCode::kAlreadyExists);
    EXPECT_EQ(chunk_files(folder), before);
}

TEST(PackRun, ForeignObjectNamedIndexIsNotOverwritten) {
    for (const std::string text : {"my notes about this folder", "SKC", ""}) {
        PackedFolder folder{20};
        test::write_file(folder.target_file("index"), text);
        const auto packed = folder.pack();
        ASSERT_FALSE(packed.has_value());
        EXPECT_EQ(packed.error().code, ErrorCode::kAlreadyExists);
        EXPECT_THAT(packed.error().message, HasSubstr("'index'"));
        const auto read = folder.open("file://" + folder.target());
        const auto write = folder.writer("file://" + folder.target());
        EXPECT_EQ(rebuild_index({*read, *write}, {}).error().code, ErrorCode::kAlreadyExists);
        EXPECT_EQ(file_text(folder.target_file("index")), text);
        EXPECT_TRUE(chunk_files(folder).empty());
    }
}

TEST(PackRun, VerifyFindsADamagedPayload) {
    PackedFolder folder;
    ASSERT_TRUE(folder.pack().has_value());
    const fs::path chunk = folder.target_file("chunk-00000001");
    flip(chunk, fs::file_size(chunk) - 1);
    fs::remove(folder.target_file("index"));
    const auto found = folder.pack();
    ASSERT_FALSE(found.has_value());
    EXPECT_EQ(found.error().code, ErrorCode::kCorruption);
    EXPECT_THAT(found.error().message, HasSubstr("chunk-00000001"));
    EXPECT_FALSE(fs::exists(folder.target_file("index")));
    folder.options.verify = false;
    EXPECT_TRUE(folder.pack().has_value());
}

TEST(PackRun, ChunkThatIsNotListedMayBeListedLater) {
    PackedFolder folder;
    folder.options.threads = 1;
    const auto packed = folder.pack("", [&](const PackProgress& progress) {
        if (progress.written == progress.chunk_count && progress.verified == 0) {
            fs::remove(folder.target_file("chunk-00000001"));
        }
    });
    ASSERT_FALSE(packed.has_value());
    EXPECT_EQ(packed.error().code, ErrorCode::kUnavailable);
    EXPECT_FALSE(fs::exists(folder.target_file("index")));
}

TEST(PackRun, DamagedHeaderStopsTheRun) {
    PackedFolder folder;
    ASSERT_TRUE(folder.pack().has_value());
    flip(folder.target_file("chunk-00000001"), 70);
    EXPECT_EQ(folder.pack().error().code, ErrorCode::kCorruption);
}

TEST(PackRun, EmptySourceIsAnError) {
    PackedFolder folder{1};
    fs::remove(fs::path{folder.source()} / "class0/0.bin");
    EXPECT_EQ(folder.pack().error().code, ErrorCode::kInvalidArgument);
}

class PackToS3 : public testing::Test {
protected:
    PackToS3() {
        server_.make_bucket("b");
        folder_.origin_options.endpoint = server_.endpoint();
    }

    test::FakeS3 server_;
    PackedFolder folder_;
};

TEST_F(PackToS3, WritesEachChunkOnceAndTheSameBytesAsToADirectory) {
    const auto packed = folder_.pack("s3://b/packed");
    ASSERT_TRUE(packed.has_value()) << packed.error().message;
    EXPECT_EQ(server_.request_count("put"), packed->chunk_count + 1);
    ASSERT_TRUE(folder_.pack().has_value());
    const auto origin = folder_.open("s3://b/packed");
    const auto listed = test::list_objects(*origin).value();
    ASSERT_EQ(listed.size(), packed->chunk_count + 1);
    for (const auto& object : listed) {
        const auto bytes = test::fetch_now(*origin, {object.key, object.etag, object.size_bytes});
        EXPECT_EQ(test::text_of(*bytes), file_text(folder_.target_file(object.key)));
    }
}

TEST_F(PackToS3, RefusedAndBusyRequestsAreTriedAgain) {
    server_.add_fault(test::parse_fault("operation=put,status=503,times=2").value());
    const auto packed = folder_.pack("s3://b/packed");
    ASSERT_TRUE(packed.has_value()) << packed.error().message;
    server_.add_fault(test::parse_fault("operation=put,status=403").value());
    folder_.options.settings.seed = 2;
    const auto refused = folder_.pack("s3://b/other");
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code, ErrorCode::kForbidden);
    EXPECT_THAT(refused.error().message, HasSubstr("chunk-"));
}

TEST_F(PackToS3, RequestThatIsRefusedAsDamagedMayPass) {
    server_.add_fault(test::parse_fault("operation=put,status=400").value());
    EXPECT_EQ(folder_.pack("s3://b/packed").error().code, ErrorCode::kUnavailable);
}

TEST_F(PackToS3, MissingBucketIsNamed) {
    const auto packed = folder_.pack("s3://nowhere/packed");
    ASSERT_FALSE(packed.has_value());
    EXPECT_EQ(packed.error().code, ErrorCode::kNotFound);
}

TEST_F(PackToS3, PacksFromS3) {
    const auto write = folder_.writer("s3://b/loose");
    ASSERT_TRUE(write->put("a", std::as_bytes(std::span{std::string_view{"one"}})).has_value());
    ASSERT_TRUE(write->put("b", std::as_bytes(std::span{std::string_view{"two"}})).has_value());
    const auto from = folder_.open("s3://b/loose");
    const auto to = folder_.open("s3://b/packed");
    const auto packed =
        run_pack(*from, {*to, *folder_.writer("s3://b/packed")}, folder_.options, {}, {});
    ASSERT_TRUE(packed.has_value()) << packed.error().message;
    EXPECT_EQ(packed->samples, 2U);
    EXPECT_EQ(packed->payload_bytes, 6U);
}

}  // namespace
}  // namespace stoker::sidecar
