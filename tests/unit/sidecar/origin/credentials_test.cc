#include "sidecar/origin/credentials.h"

#include <filesystem>
#include <fstream>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace stoker::sidecar {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

class HandClock final : public Clock {
public:
    [[nodiscard]] TimePoint now() const override { return now_; }

    [[nodiscard]] WallTime wall_now() const override { return WallTime{now_.time_since_epoch()}; }

    void advance(Duration by) { now_ += by; }

private:
    TimePoint now_{1h};
};

Environment environment(std::map<std::string, std::string> values) {
    return [values = std::move(values)](const char* name) -> const char* {
        const auto found = values.find(name);
        return found == values.end() ? nullptr : found->second.c_str();
    };
}

TEST(Credentials, ComeFromTheEnvironment) {
    const auto source = credentials_from_environment(environment(
        {{"AWS_ACCESS_KEY_ID", "id"},
         {"AWS_SECRET_ACCESS_KEY", "secret"},
         {"AWS_SESSION_TOKEN", "token"}}));
    ASSERT_TRUE(source.has_value());
    EXPECT_EQ((*source)->get().value(), (Credentials{"id", "secret", "token"}));
}

TEST(Credentials, WithoutVariablesThereIsNoSource) {
    for (const auto& values :
         {std::map<std::string, std::string>{},
          {{"AWS_ACCESS_KEY_ID", ""}, {"AWS_SECRET_ACCESS_KEY", ""}}}) {
        const auto source = credentials_from_environment(environment(values));
        ASSERT_TRUE(source.has_value());
        EXPECT_EQ(*source, nullptr);
    }
}

TEST(Credentials, HalfAPairIsAnErrorThatNamesTheMissingHalf) {
    const auto no_secret = credentials_from_environment(environment({{"AWS_ACCESS_KEY_ID", "id"}}));
    ASSERT_FALSE(no_secret.has_value());
    EXPECT_EQ(no_secret.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(no_secret.error().message, HasSubstr("without AWS_SECRET_ACCESS_KEY"));
    const auto no_id =
        credentials_from_environment(environment({{"AWS_SECRET_ACCESS_KEY", "s3cr3t"}}));
    ASSERT_FALSE(no_id.has_value());
    EXPECT_THAT(no_id.error().message, HasSubstr("without AWS_ACCESS_KEY_ID"));
    EXPECT_THAT(no_id.error().message, testing::Not(HasSubstr("s3cr3t")));
}

class MountedSecret : public testing::Test {
protected:
    void SetUp() override {
        directory_ = testing::TempDir() + "/stoker-credentials-" + std::to_string(::getpid());
        std::filesystem::create_directories(directory_);
    }

    void TearDown() override { std::filesystem::remove_all(directory_); }

    void write(const std::string& name, const std::string& text) const {
        std::ofstream{directory_ + "/" + name} << text;
    }

    std::string directory_;
    HandClock clock_;
};

TEST_F(MountedSecret, IsReadWithoutLineEnds) {
    write("AWS_ACCESS_KEY_ID", "id\n");
    write("AWS_SECRET_ACCESS_KEY", "secret\r\n");
    const auto source = credentials_from_directory(directory_, clock_);
    EXPECT_EQ(source->get().value(), (Credentials{"id", "secret", ""}));
}

TEST_F(MountedSecret, IsReadAgainWhenItRotates) {
    write("AWS_ACCESS_KEY_ID", "old");
    write("AWS_SECRET_ACCESS_KEY", "secret");
    const auto source = credentials_from_directory(directory_, clock_);
    EXPECT_EQ(source->get().value()->access_key_id, "old");
    write("AWS_ACCESS_KEY_ID", "new");
    write("AWS_SESSION_TOKEN", "token");
    EXPECT_EQ(source->get().value()->access_key_id, "old") << "looked at once a second";
    clock_.advance(1s);
    EXPECT_EQ(source->get().value(), (Credentials{"new", "secret", "token"}));
}

TEST_F(MountedSecret, NamesAMissingFileAndRecovers) {
    write("AWS_ACCESS_KEY_ID", "id");
    const auto source = credentials_from_directory(directory_, clock_);
    const auto missing = source->get();
    ASSERT_FALSE(missing.has_value());
    EXPECT_EQ(missing.error().code, ErrorCode::kForbidden);
    EXPECT_THAT(missing.error().message, HasSubstr("AWS_SECRET_ACCESS_KEY cannot be read"));
    write("AWS_SECRET_ACCESS_KEY", "\n");
    clock_.advance(1s);
    EXPECT_THAT(source->get().error().message, HasSubstr("AWS_SECRET_ACCESS_KEY is empty"));
    write("AWS_SECRET_ACCESS_KEY", "secret");
    clock_.advance(1s);
    EXPECT_TRUE(source->get().has_value());
}

}  // namespace
}  // namespace stoker::sidecar
