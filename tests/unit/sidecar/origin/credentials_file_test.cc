#include "sidecar/origin/credentials_file.h"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/manual_clock.h"
#include "tests/support/temp_folder.h"

namespace stoker::sidecar {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;

class CredentialsFile : public ::testing::Test {
protected:
    // Replaces the file, as a program that renews it does.
    void write(const std::string& text) {
        std::ofstream{path_ + ".new"} << text;
        std::filesystem::rename(path_ + ".new", path_);
    }

    Error refusal() {
        clock_.advance(1s);
        const auto got = source_->get();
        return got ? Error{} : got.error();
    }

    test::TempFolder folder_;
    const std::string path_ = folder_.path() + "/keys.json";
    stoker::testing::ManualClock clock_;  // 2026-01-31T12:00:00Z
    std::unique_ptr<CredentialSource> source_ = credentials_from_file(path_, clock_);
};

TEST_F(CredentialsFile, ReadsTheOutputOfACredentialProcess) {
    write(R"({"Version": 1, "AccessKeyId": "id", "SecretAccessKey": "s", "SessionToken": "t",
              "Expiration": "2026-01-31T13:00:00Z"})");
    EXPECT_EQ(source_->get().value(), (Credentials{"id", "s", "t"}));
}

TEST_F(CredentialsFile, NeedsNoTokenAndNoExpiration) {
    write(R"({"AccessKeyId": "id", "SecretAccessKey": "s"})");
    EXPECT_EQ(source_->get().value(), (Credentials{"id", "s", ""}));
    clock_.advance(10000h);
    EXPECT_TRUE(source_->get().has_value());
}

TEST_F(CredentialsFile, IsReadAgainAfterItWasReplaced) {
    write(R"({"AccessKeyId": "old", "SecretAccessKey": "s"})");
    EXPECT_EQ(source_->get().value()->access_key_id, "old");
    write(R"({"AccessKeyId": "new", "SecretAccessKey": "s"})");
    EXPECT_EQ(source_->get().value()->access_key_id, "old") << "looked at once a second";
    clock_.advance(1s);
    EXPECT_EQ(source_->get().value()->access_key_id, "new");
}

TEST_F(CredentialsFile, IsReadAgainInTheLastMinuteAndRefusedAfterExpiry) {
    write(R"({"AccessKeyId": "a", "SecretAccessKey": "s", "Expiration": "2026-01-31T13:00:00Z"})");
    ASSERT_TRUE(source_->get().has_value());
    const auto written = std::filesystem::last_write_time(path_);
    // Written in place within the clock's resolution: the file's status does not change.
    std::ofstream{path_} << R"({"AccessKeyId": "b", "SecretAccessKey": "s", )"
                            R"("Expiration": "2026-01-31T13:59:00Z"})";
    std::filesystem::last_write_time(path_, written);
    clock_.advance(59min);
    EXPECT_EQ(source_->get().value()->access_key_id, "b");
    clock_.advance(1h);
    const Error expired = refusal();
    EXPECT_EQ(expired.code, ErrorCode::kForbidden);
    EXPECT_THAT(expired.message, HasSubstr(path_ + " has expired and was not renewed"));
}

TEST_F(CredentialsFile, ErrorsNameTheMistakeButNoSecret) {
    EXPECT_THAT(refusal().message, HasSubstr(path_ + " cannot be read: No such file"));
    write("");
    EXPECT_THAT(refusal().message, HasSubstr("is empty"));
    write("s3cr3t");
    EXPECT_THAT(refusal().message, HasSubstr("is not a JSON object"));
    EXPECT_THAT(refusal().message, Not(HasSubstr("s3cr3t")));
    write(R"({"AccessKeyId": "id", "SecretAccessKey": 7})");
    EXPECT_THAT(refusal().message, HasSubstr("has no AccessKeyId with a SecretAccessKey"));
    write(R"({"AccessKeyId": "id", "SecretAccessKey": "s", "Expiration": "soon"})");
    EXPECT_THAT(refusal().message, HasSubstr("not a time in UTC"));
    write(std::string(100'000, ' ') + "{}");
    EXPECT_THAT(refusal().message, HasSubstr("is larger than 64 KiB"));
    write(R"({"AccessKeyId": "id", "SecretAccessKey": "s"})");
    clock_.advance(1s);
    EXPECT_TRUE(source_->get().has_value());
}

}  // namespace
}  // namespace stoker::sidecar
