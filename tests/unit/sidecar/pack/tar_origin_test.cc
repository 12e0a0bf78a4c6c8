#include "sidecar/pack/tar_origin.h"

#include <cstdlib>

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/list_objects.h"
#include "tests/unit/sidecar/pack/packed_folder.h"

namespace stoker::sidecar {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class TarOriginTest : public testing::TestWithParam<const char*> {
protected:
    void add(const std::string& key, const std::string& text) {
        test::write_file(fs::path{folder_.path()} / "in" / key, text);
    }

    // Calls the system's tar.
    std::string tar(const std::string& name, const std::string& format) {
        std::string path = folder_.path() + "/" + name;
        const std::string command =
            fmt::format("tar -C {}/in --format={} -cf {} .", folder_.path(), format, path);
        EXPECT_EQ(std::system(command.c_str()), 0) << command;
        return path;
    }

    test::TempFolder folder_;
};

TEST_P(TarOriginTest, ReadsEveryFileOfEachTarFormat) {
    const std::string format = GetParam();
    std::map<std::string, std::string> files{{"cat/1.jpg", "meow"}, {"empty", ""}};
    files["big"] = std::string(1500, 'b');
    files["long/" + std::string(80, 'd') + "/" + std::string(60, 'f')] = "prefixed";
    if (format != "ustar") {
        files["longer/" + std::string(200, 'x')] = "long name";
    }
    for (const auto& [key, text] : files) {
        add(key, text);
    }
    const auto origin = make_tar_origin({tar("a.tar", format)}).value();
    const auto listed = test::list_objects(*origin);
    ASSERT_TRUE(listed.has_value()) << listed.error().message;
    std::map<std::string, std::string> got;
    for (const auto& object : *listed) {
        const auto bytes = test::fetch_now(*origin, {object.key, object.etag, object.size_bytes});
        ASSERT_TRUE(bytes.has_value()) << bytes.error().message;
        got[object.key] = test::text_of(*bytes);
    }
    EXPECT_EQ(got, files);
}

INSTANTIATE_TEST_SUITE_P(
    Formats, TarOriginTest, testing::Values("ustar", "pax", "gnu"), [](const auto& tested) {
        return std::string{tested.param};
    });

using TarOriginErrors = TarOriginTest;

TEST_F(TarOriginErrors, LinksAreRefused) {
    add("a", "1");
    fs::create_symlink("a", fs::path{folder_.path()} / "in/link");
    const auto listed = test::list_objects(*make_tar_origin({tar("a.tar", "gnu")}).value());
    ASSERT_FALSE(listed.has_value());
    EXPECT_THAT(listed.error().message, HasSubstr("link"));
}

// GNU tar marks a sparse file by type 'S' in its format gnu, and by records of a pax header in its
// format pax.
TEST_F(TarOriginErrors, SparseFilesAreRefused) {
    add("hole", "x");
    fs::resize_file(fs::path{folder_.path()} / "in/hole", 1U << 20U);
    for (const std::string options :
         {"gnu --sparse",
          "pax --sparse --sparse-version=0.0",
          "pax --sparse --sparse-version=0.1",
          "pax --sparse --sparse-version=1.0"}) {
        const auto listed = test::list_objects(*make_tar_origin({tar("a.tar", options)}).value());
        ASSERT_FALSE(listed.has_value()) << options;
        EXPECT_EQ(listed.error().code, ErrorCode::kInvalidArgument) << options;
        EXPECT_THAT(listed.error().message, HasSubstr("sparse"));
    }
    EXPECT_TRUE(test::list_objects(*make_tar_origin({tar("a.tar", "pax")}).value()).has_value());
}

TEST_F(TarOriginErrors, FileThatChangesAfterTheListingIsAConflict) {
    add("a", std::string(3000, 'a'));
    const std::string path = tar("a.tar", "pax");
    const std::string whole = test::file_text(path);
    for (const std::string& text :
         {std::string(whole.size(), 'z'), whole + "more", whole.substr(0, 600)}) {
        test::write_file(path, whole);
        const auto origin = make_tar_origin({path}).value();
        const auto object = test::list_objects(*origin).value().front();
        const OriginFetch wanted{object.key, object.etag, object.size_bytes};
        EXPECT_TRUE(test::fetch_now(*origin, wanted).has_value());
        test::write_file(path, text);
        fs::last_write_time(path, fs::file_time_type::clock::now() + std::chrono::seconds{2});
        const auto bytes = test::fetch_now(*origin, wanted);
        ASSERT_FALSE(bytes.has_value());
        EXPECT_EQ(bytes.error().code, ErrorCode::kConflict);
        EXPECT_THAT(bytes.error().message, HasSubstr(path));
    }
}

TEST_F(TarOriginErrors, StoppedListingIsCancelled) {
    add("a", "1");
    const std::string path = tar("a.tar", "pax");
    const auto origin = make_tar_origin({path, path}).value();
    std::stop_source stop;
    const auto listed = test::list_objects(
        *origin, [&](auto) { stop.request_stop(); }, stop.get_token());
    ASSERT_FALSE(listed.has_value());
    EXPECT_EQ(listed.error().code, ErrorCode::kCancelled);
}

TEST_F(TarOriginErrors, TruncatedAndForeignFilesAreCorrupt) {
    add("a", std::string(3000, 'a'));
    const std::string path = tar("a.tar", "gnu");
    const std::string whole = test::file_text(path);
    for (const std::size_t length : {100U, 600U, 1100U, 2000U}) {
        test::write_file(path, whole.substr(0, length));
        const auto listed = test::list_objects(*make_tar_origin({path}).value());
        EXPECT_EQ(listed.error().code, ErrorCode::kCorruption) << length;
    }
    test::write_file(path, std::string(2048, 'z'));
    EXPECT_THAT(
        test::list_objects(*make_tar_origin({path}).value()).error().message,
        HasSubstr("compressed"));
    EXPECT_EQ(make_tar_origin({"/nowhere.tar"}).error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace stoker::sidecar
