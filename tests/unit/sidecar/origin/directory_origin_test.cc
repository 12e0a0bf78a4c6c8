#include "sidecar/origin/directory_origin.h"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/list_objects.h"
#include "tests/support/origin_calls.h"

namespace stoker::sidecar {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using test::fetch_now;
using test::text_of;
using testing::HasSubstr;
using testing::StartsWith;

const SystemClock kClock;

class DirectoryOriginTest : public testing::Test {
protected:
    void SetUp() override {
        top_ = fs::path{testing::TempDir()} / ("stoker-directory-" + std::to_string(::getpid()));
        fs::remove_all(top_);
        root_ = top_ / "root";
        fs::create_directories(root_);
        write(top_ / "secret", "outside");
        options_.retry = {.attempts_max = 2, .backoff_first = 1ms};
    }

    void TearDown() override { fs::remove_all(top_); }

    static void write(const fs::path& path, const std::string& text) {
        fs::create_directories(path.parent_path());
        std::ofstream{path, std::ios::binary} << text;
    }

    std::unique_ptr<Origin> open() {
        auto origin = make_origin(
            "file://" + root_.string(), options_, [](const char*) { return nullptr; }, kClock, 1);
        EXPECT_TRUE(origin.has_value()) << origin.error().message;
        return *std::move(origin);
    }

    // The listed objects by key; fails the test when the listing fails.
    std::map<std::string, domain::ListedObject> list(Origin& origin) {
        const auto listed = test::list_objects(origin);
        EXPECT_TRUE(listed.has_value()) << listed.error().message;
        std::map<std::string, domain::ListedObject> by_key;
        for (const auto& object : listed.value_or(std::vector<domain::ListedObject>{})) {
            by_key[object.key] = object;
        }
        return by_key;
    }

    static OriginFetch wanting(const domain::ListedObject& object) {
        return {object.key, object.etag, object.size_bytes};
    }

    fs::path top_;
    fs::path root_;
    OriginOptions options_;
};

TEST_F(DirectoryOriginTest, FetchesListedFiles) {
    const std::vector<std::string> keys = {
        "a.jpg", "cat/1 2+3%.jpg", "cat/deep/er/x", "\u96ea/\u00fc", ".hidden", "q?#&"};
    for (const std::string& key : keys) {
        write(root_ / key, "bytes of " + key);
    }
    write(root_ / "empty", "");
    fs::create_directories(root_ / "no files here");
    const auto origin = open();
    const auto listed = list(*origin);
    EXPECT_EQ(listed.size(), keys.size() + 1);
    for (const std::string& key : keys) {
        SCOPED_TRACE(key);
        ASSERT_TRUE(listed.contains(key));
        const auto bytes = fetch_now(*origin, wanting(listed.at(key)));
        ASSERT_TRUE(bytes.has_value()) << bytes.error().message;
        EXPECT_EQ(text_of(*bytes), "bytes of " + key);
    }
    EXPECT_TRUE(fetch_now(*origin, wanting(listed.at("empty")))->payload.empty());
    EXPECT_EQ(origin->describe(), "file://" + root_.string());
}

TEST_F(DirectoryOriginTest, TimesTheReadOfAFile) {
    write(root_ / "empty", "");
    write(root_ / "large", std::string(4 << 20, 'x'));
    const auto origin = open();
    for (const auto& [key, object] : list(*origin)) {
        const auto bytes = fetch_now(*origin, wanting(object));
        ASSERT_TRUE(bytes.has_value()) << bytes.error().message;
        EXPECT_GT(bytes->request_time, Duration::zero()) << key;
        EXPECT_GE(bytes->request_time, bytes->first_byte) << key;
    }
}

TEST_F(DirectoryOriginTest, ReportsProgressAndStops) {
    for (int i = 0; i < 2500; ++i) {
        write(root_ / std::to_string(i), "");
    }
    const auto origin = open();
    std::vector<std::uint64_t> progress;
    const auto listed =
        test::list_objects(*origin, [&](std::uint64_t count) { progress.push_back(count); }, {});
    ASSERT_TRUE(listed.has_value());
    EXPECT_THAT(progress, testing::ElementsAre(1000, 2000, 2500));
    std::stop_source stop;
    const auto stopped = test::list_objects(
        *origin, [&](std::uint64_t) { stop.request_stop(); }, stop.get_token());
    ASSERT_FALSE(stopped.has_value());
    EXPECT_EQ(stopped.error().code, ErrorCode::kCancelled);
}

TEST_F(DirectoryOriginTest, AFileChangedSinceTheListingIsAConflict) {
    for (const char* key : {"longer", "shorter", "same length", "replaced"}) {
        write(root_ / key, "0123456789");
    }
    const auto origin = open();
    const auto listed = list(*origin);
    write(root_ / "longer", "0123456789+");
    write(root_ / "shorter", "0");
    write(root_ / "same length", "abcdefghij");
    // Sets a later time, because a file system's clock is coarse.
    fs::last_write_time(root_ / "same length", fs::file_time_type::clock::now() + 1s);
    const auto time = fs::last_write_time(root_ / "replaced");
    write(root_ / "new", "9876543210");
    fs::last_write_time(root_ / "new", time);
    fs::rename(root_ / "new", root_ / "replaced");
    for (const auto& [key, object] : listed) {
        SCOPED_TRACE(key);
        const auto bytes = fetch_now(*origin, wanting(object));
        ASSERT_FALSE(bytes.has_value());
        EXPECT_EQ(bytes.error().code, ErrorCode::kConflict);
        EXPECT_THAT(bytes.error().message, StartsWith("'" + key + "' of file://"));
        EXPECT_THAT(bytes.error().message, HasSubstr("changed at the origin"));
    }
}

TEST_F(DirectoryOriginTest, AVanishedFileIsNotFound) {
    write(root_ / "a/gone", "x");
    const auto origin = open();
    const auto listed = list(*origin);
    fs::remove_all(root_ / "a");
    const auto bytes = fetch_now(*origin, wanting(listed.at("a/gone")));
    ASSERT_FALSE(bytes.has_value());
    EXPECT_EQ(bytes.error().code, ErrorCode::kNotFound);
    EXPECT_THAT(bytes.error().message, HasSubstr("No such file or directory"));
}

TEST_F(DirectoryOriginTest, NeverReadsOutsideTheRoot) {
    fs::create_symlink("../secret", root_ / "link");
    fs::create_symlink(top_, root_ / "up");
    const auto origin = open();
    for (const std::string& key :
         {std::string{"../secret"},
          std::string{"a/../../secret"},
          (top_ / "secret").string(),
          std::string{"link"},
          std::string{"up/secret"},
          std::string{""},
          std::string{"..\0x", 4}}) {
        SCOPED_TRACE(key);

        struct stat status {};

        ASSERT_EQ(::stat((top_ / "secret").c_str(), &status), 0);
        const auto bytes = fetch_now(*origin, {key, "any", 7});
        ASSERT_FALSE(bytes.has_value());
        EXPECT_TRUE(
            bytes.error().code == ErrorCode::kForbidden ||
            bytes.error().code == ErrorCode::kNotFound)
            << bytes.error().message;
    }
    const auto listed = test::list_objects(*origin);
    ASSERT_FALSE(listed.has_value()) << "a link that leaves is an error, not a missing sample";
    EXPECT_EQ(listed.error().code, ErrorCode::kForbidden);
    EXPECT_THAT(listed.error().message, HasSubstr("leads out of the directory"));
}

TEST_F(DirectoryOriginTest, FollowsLinksInside) {
    write(root_ / "real/1", "one");
    fs::create_symlink("real/1", root_ / "alias");
    fs::create_directory_symlink("real", root_ / "also real");
    const auto origin = open();
    const auto listed = list(*origin);
    ASSERT_EQ(listed.size(), 3U);
    for (const auto& [key, object] : listed) {
        const auto bytes = fetch_now(*origin, wanting(object));
        ASSERT_TRUE(bytes.has_value()) << bytes.error().message;
        EXPECT_EQ(text_of(*bytes), "one");
    }
}

TEST_F(DirectoryOriginTest, NamesLoopsAndDanglingLinks) {
    fs::create_directories(root_ / "a/b");
    fs::create_directory_symlink("..", root_ / "a/b/round");
    auto listed = test::list_objects(*open());
    ASSERT_FALSE(listed.has_value());
    EXPECT_EQ(listed.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(listed.error().message, HasSubstr("'a/b/round': links in a circle"));
    fs::remove(root_ / "a/b/round");
    fs::create_symlink("nowhere", root_ / "dangling");
    listed = test::list_objects(*open());
    ASSERT_FALSE(listed.has_value());
    EXPECT_EQ(listed.error().code, ErrorCode::kNotFound);
    EXPECT_THAT(listed.error().message, HasSubstr("'dangling'"));
}

TEST_F(DirectoryOriginTest, IgnoresPipesAndSockets) {
    ASSERT_EQ(::mkfifo((root_ / "pipe").c_str(), 0600), 0);
    write(root_ / "file", "x");
    const auto origin = open();
    EXPECT_EQ(list(*origin).size(), 1U);
    EXPECT_FALSE(fetch_now(*origin, {"pipe", "any", 0}).has_value()) << "and opening one returns";
}

TEST_F(DirectoryOriginTest, ManyFetchesRunWithinTheirLimits) {
    options_.bytes_in_flight_max = Bytes{64 * 1024};
    std::vector<test::FetchFuture> futures;
    for (int i = 0; i < 300; ++i) {
        write(root_ / std::to_string(i), std::string(static_cast<std::size_t>(i) * 100, 'x'));
    }
    const auto origin = open();
    for (const auto& [key, object] : list(*origin)) {
        futures.push_back(test::start_fetch(*origin, wanting(object)));
    }
    for (auto& future : futures) {
        EXPECT_TRUE(future.get().has_value());
    }
}

TEST_F(DirectoryOriginTest, LeavesTooLargeFilesToTheClient) {
    options_.object_bytes_max = Bytes{10};
    write(root_ / "large", "12345678901");
    const auto origin = open();
    const auto bytes = fetch_now(*origin, wanting(list(*origin).at("large")));
    ASSERT_FALSE(bytes.has_value());
    EXPECT_EQ(bytes.error().code, ErrorCode::kResourceExhausted);
}

TEST_F(DirectoryOriginTest, DestructionFinishesEveryFetch) {
    write(root_ / "file", std::string(1'000'000, 'x'));
    auto origin = open();
    const auto object = list(*origin).at("file");
    std::vector<test::FetchFuture> futures;
    for (int i = 0; i < 500; ++i) {
        futures.push_back(test::start_fetch(*origin, wanting(object)));
    }
    origin.reset();
    for (auto& future : futures) {
        const auto result = future.get();
        EXPECT_TRUE(result.has_value() || result.error().code == ErrorCode::kCancelled);
    }
}

TEST_F(DirectoryOriginTest, RefusesInvalidRoots) {
    const auto no_environment = [](const char*) { return nullptr; };
    const auto missing = make_origin("file:///no/such/dir", options_, no_environment, kClock, 1);
    ASSERT_FALSE(missing.has_value());
    EXPECT_EQ(missing.error().code, ErrorCode::kNotFound);
    const auto file =
        make_origin("file://" + (top_ / "secret").string(), options_, no_environment, kClock, 1);
    ASSERT_FALSE(file.has_value());
    EXPECT_EQ(file.error().code, ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace stoker::sidecar
