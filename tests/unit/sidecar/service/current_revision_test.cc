#include "sidecar/service/current_revision.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "sidecar/device/posix_device.h"
#include "tests/support/temp_folder.h"

namespace stoker::sidecar {
namespace {

const CurrentRevision kCurrent{
    domain::RevisionId{0xBEEF},
    "s3://b/ü at \"x\"",
    "job-1",
    "uid-a3",
    true,
    WallTime{std::chrono::seconds{1'790'000'000}},
    {"uid-b2", "uid-c1"}};

TEST(CurrentRevision, IsLoadedAsSaved) {
    const test::TempFolder folder;
    const auto device = make_posix_device();
    EXPECT_EQ(load_current(*device, folder.path()), std::nullopt);
    ASSERT_TRUE(save_current(*device, folder.path(), kCurrent).has_value());
    EXPECT_EQ(load_current(*device, folder.path()), kCurrent);
}

TEST(CurrentRevision, ForgetsTheAgeOfTheCurrentListingOnly) {
    const test::TempFolder folder;
    const auto device = make_posix_device();
    ASSERT_TRUE(save_current(*device, folder.path(), kCurrent).has_value());
    forget_age(*device, folder.path(), domain::RevisionId{0xBEE});
    EXPECT_EQ(load_current(*device, folder.path()), kCurrent);
    forget_age(*device, folder.path(), kCurrent.revision);
    CurrentRevision without = kCurrent;
    without.listed_at.reset();
    EXPECT_EQ(load_current(*device, folder.path()), without);
}

TEST(CurrentRevision, InvalidContentIsNoRevision) {
    for (const char* text :
         {"",
          "{",
          "[]",
          "{}",
          R"({"revision": 7})",
          R"({"revision": "beef"})",
          R"({"revision": "000000000000beeg"})",
          R"({"revision": "000000000000beef0"})"}) {
        EXPECT_EQ(decode_current(text), std::nullopt) << text;
    }
    EXPECT_TRUE(decode_current(R"({"revision": "000000000000beef"})").has_value());
}

TEST(CurrentRevision, AFileOfAnOlderVersionHasNoAttemptAndIsNotTaken) {
    for (const char* more : {"", R"(,"attempt":2)", R"(,"attemptUid":2)"}) {
        const auto current =
            decode_current(fmt::format(R"({{"revision":"000000000000beef"{}}})", more));
        ASSERT_TRUE(current.has_value()) << more;
        EXPECT_EQ(current->attempt_uid, "") << more;
        EXPECT_FALSE(current->is_taken) << more;
        EXPECT_EQ(current->listed_at, std::nullopt) << more;
    }
}

TEST(CurrentRevision, AnInvalidTimeIsNotKnown) {
    for (const char* time : {"-1", "\"1790000000\"", "1e300", "1.5", "9223372036854775807", "{}"}) {
        const auto current =
            decode_current(fmt::format(R"({{"revision":"000000000000beef","listedAt":{}}})", time));
        ASSERT_TRUE(current.has_value()) << time;
        EXPECT_EQ(current->listed_at, std::nullopt) << time;
    }
}

TEST(CurrentRevision, IsOfTheLastAttemptsThatHaveReadIt) {
    CurrentRevision current = adopted_by(kCurrent, "job-3", "uid-c1");
    EXPECT_EQ(current.job_uid, "job-3");
    EXPECT_EQ(current.attempt_uid, "uid-c1");
    EXPECT_EQ(current.other_attempts, (std::vector<std::string>{"uid-a3", "uid-b2"}));
    EXPECT_TRUE(current.is_of("uid-c1") && current.is_of("uid-a3") && current.is_of("uid-b2"));
    EXPECT_FALSE(current.is_of("uid-d1"));
    EXPECT_FALSE(current.is_of(""));
    EXPECT_EQ(adopted_by(current, "job-3", "uid-c1"), current);
    for (std::size_t i = 0; i < CurrentRevision::kOtherAttemptsMax; ++i) {
        current = adopted_by(current, "job-4", "uid-" + std::to_string(i));
    }
    EXPECT_TRUE(current.is_of("uid-c1"));
    EXPECT_FALSE(current.is_of("uid-a3")) << "the list is full";
    EXPECT_TRUE(adopted_by({}, "job-1", "uid-a1").other_attempts.empty());
}

TEST(CurrentRevision, InvalidOtherAttemptsAreLeftOut) {
    for (const char* others : {"7", "{}", R"("uid")", "[7, {}, null]"}) {
        const auto current = decode_current(
            fmt::format(R"({{"revision":"000000000000beef","otherAttemptUids":{}}})", others));
        ASSERT_TRUE(current.has_value()) << others;
        EXPECT_TRUE(current->other_attempts.empty()) << others;
    }
}

TEST(CurrentRevision, HasAnAgeUnlessTheClockWasSetBack) {
    const WallTime listed_at = *kCurrent.listed_at;
    EXPECT_EQ(age_of(kCurrent, listed_at), Duration{});
    EXPECT_EQ(age_of(kCurrent, listed_at + std::chrono::hours{1}), std::chrono::hours{1});
    EXPECT_EQ(age_of(kCurrent, listed_at - std::chrono::seconds{1}), std::nullopt);
    EXPECT_EQ(age_of({}, listed_at), std::nullopt);
}

}  // namespace
}  // namespace stoker::sidecar
