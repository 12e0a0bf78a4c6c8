#include "sidecar/service/preparation.h"

#include <gtest/gtest.h>

#include "sidecar/device/posix_device.h"
#include "tests/support/dataset.h"
#include "tests/support/fake_origin.h"
#include "tests/support/temp_folder.h"

namespace stoker::sidecar {
namespace {

TEST(SegmentSizes, AreTheDefaultsOnALargeDisk) {
    const auto sizes = segment_sizes(gib(1000), mib(256));
    EXPECT_EQ(sizes, (SegmentSizes{mib(64), mib(8)}));
}

TEST(SegmentSizes, ShrinkWithTheDiskAndTheWindow) {
    EXPECT_EQ(segment_sizes(gib(1), mib(16)), (SegmentSizes{mib(16), mib(1)}));
    EXPECT_EQ(segment_sizes(mib(8), mib(1)), (SegmentSizes{mib(1), kib(128)}));
}

class PrepareDataset : public testing::Test {
protected:
    Result<Preparation> prepare() {
        options.directory = options.control_directory = folder.path();
        options.store.boot_id = "boot-1";
        options.store.reserved_free = 0;
        options.window_bytes = mib(16);
        return prepare_dataset(*device, origin, options, [](std::uint64_t) {}, {});
    }

    // Prepares the dataset. Returns its revision; 0 on an error.
    std::uint64_t revision() {
        const auto prepared = prepare();
        EXPECT_TRUE(prepared.has_value()) << prepared.error().message;
        return prepared ? prepared->manifest->view().revision().value() : 0;
    }

    // Lists the origin at kListedAt.
    void list_for_attempt(const std::string& uid) {
        options.job_uid = "job-1";
        options.attempt_uid = uid;
        options.wall_now = kListedAt;
        EXPECT_EQ(revision(), dataset.manifest().revision().value());
    }

    static constexpr WallTime kListedAt{std::chrono::seconds{1'790'000'000}};

    void change_dataset() { origin.list_instead({{"only.png", 7, "new"}}); }

    test::TempFolder folder;
    test::Dataset dataset{{10, 20, 30}};
    test::FakeOrigin origin{dataset};
    std::unique_ptr<Device> device = make_posix_device();
    PreparationOptions options = [] {
        PreparationOptions made;
        made.source = "fake://dataset";
        return made;
    }();
};

TEST_F(PrepareDataset, ListsANewOrigin) {
    EXPECT_EQ(revision(), dataset.manifest().revision().value());
    EXPECT_EQ(origin.listings(), 1U);
}

TEST_F(PrepareDataset, WithoutAJobEveryStartListsAgain) {
    const auto before = revision();
    change_dataset();
    EXPECT_NE(revision(), before);
}

TEST_F(PrepareDataset, AnAttemptKeepsItsRevision) {
    options.job_uid = "job-1";
    options.attempt_uid = "uid-a1";
    const auto before = revision();
    change_dataset();
    EXPECT_EQ(revision(), before);
    EXPECT_EQ(origin.listings(), 1U);
    options.attempt_uid = "";
    EXPECT_NE(revision(), before);
}

TEST_F(PrepareDataset, TheNextAttemptListsAgain) {
    options.job_uid = "job-1";
    options.attempt_uid = "uid-a1";
    const auto before = revision();
    change_dataset();
    options.attempt_uid = "uid-a2";
    EXPECT_NE(revision(), before);
}

TEST_F(PrepareDataset, TheNextAttemptKeepsARevisionThatClientsUse) {
    options.job_uid = "job-1";
    options.attempt_uid = "uid-a1";
    const auto before = revision();
    change_dataset();
    options.attempt_uid = "uid-a2";
    options.keep_revision = true;
    EXPECT_EQ(revision(), before);
}

// After a restart of the sidecar no client is welcomed yet.
TEST_F(PrepareDataset, ARevisionThatClientsUseBecomesTheirAttempts) {
    options.job_uid = "job-1";
    options.attempt_uid = "uid-a1";
    const auto before = revision();
    change_dataset();
    options.job_uid = "job-2";
    options.attempt_uid = "uid-b1";
    options.keep_revision = true;
    EXPECT_EQ(revision(), before);
    options.keep_revision = false;
    EXPECT_EQ(revision(), before);
    EXPECT_EQ(origin.listings(), 1U);
}

// The sidecars of two jobs on a node end and start again, one after the other.
TEST_F(PrepareDataset, ARevisionStaysThatOfTheAttemptBefore) {
    list_for_attempt("uid-a1");
    change_dataset();
    options.job_uid = "job-2";
    options.attempt_uid = "uid-b1";
    options.keep_revision = true;
    const auto before = revision();
    options.job_uid = "job-1";
    options.attempt_uid = "uid-a1";
    options.keep_revision = false;
    const auto prepared = prepare();
    ASSERT_TRUE(prepared.has_value());
    EXPECT_EQ(prepared->manifest->view().revision().value(), before);
    EXPECT_EQ(prepared->current.attempt_uid, "uid-a1") << "peers of its attempt may take it";
    EXPECT_EQ(prepared->current.job_uid, "job-1");
    EXPECT_EQ(origin.listings(), 1U);
}

TEST_F(PrepareDataset, ANewAttemptUsesAYoungListingAndKeepsIt) {
    list_for_attempt("uid-a1");
    change_dataset();
    options.attempt_uid = "uid-a2";
    options.listing_age_max = std::chrono::hours{1};
    options.use_young = true;
    options.wall_now += std::chrono::minutes{59};
    const auto prepared = prepare();
    ASSERT_TRUE(prepared.has_value());
    EXPECT_EQ(prepared->source, Preparation::Source::kKept);
    EXPECT_EQ(prepared->current.attempt_uid, "uid-a2");
    EXPECT_EQ(prepared->current.listed_at, kListedAt);
    options.use_young = false;
    options.wall_now += std::chrono::hours{5};
    EXPECT_EQ(revision(), dataset.manifest().revision().value()) << "a restart";
    EXPECT_EQ(origin.listings(), 1U);
}

TEST_F(PrepareDataset, AListingIsYoungWhileItIsYoungerThanTheLimit) {
    list_for_attempt("uid-a1");
    options.attempt_uid = "uid-a2";
    const auto is_young_after = [&](Duration age, std::optional<Duration> most) {
        options.listing_age_max = most;
        options.wall_now = kListedAt + age;
        return is_young(load_current(*device, folder.path()), options);
    };
    const std::chrono::hours hour{1};
    EXPECT_TRUE(is_young_after(Duration{}, hour));
    EXPECT_TRUE(is_young_after(hour - std::chrono::seconds{1}, hour));
    EXPECT_FALSE(is_young_after(hour, hour));
    EXPECT_FALSE(is_young_after(-std::chrono::seconds{1}, hour)) << "the clock was set back";
    EXPECT_FALSE(is_young_after(Duration{}, Duration{})) << "mode ETag";
    EXPECT_FALSE(is_young_after(Duration{}, std::nullopt)) << "mode Immutable";
    options.list_again = true;
    EXPECT_FALSE(is_young_after(Duration{}, hour)) << "another revision is pinned";
}

TEST_F(PrepareDataset, AListingThatHasGrownOldMeanwhileIsReplaced) {
    list_for_attempt("uid-a1");
    change_dataset();
    options.attempt_uid = "uid-a2";
    options.listing_age_max = std::chrono::hours{1};
    options.use_young = true;
    options.wall_now += std::chrono::hours{1};
    EXPECT_NE(revision(), dataset.manifest().revision().value());
    EXPECT_EQ(load_current(*device, folder.path())->listed_at, options.wall_now);
}

TEST_F(PrepareDataset, WithALimitOfAgeTheLastListingIsNotUsedWhileTheOriginIsDown) {
    revision();
    origin.fail_with(Error{ErrorCode::kUnavailable, "503"});
    options.listing_age_max = Duration{};
    EXPECT_EQ(prepare().error().code, ErrorCode::kUnavailable);
}

TEST_F(PrepareDataset, ATakenManifestKeepsTheTimeOfItsListing) {
    const domain::RevisionId taken{revision()};
    options.taken = {taken, options.source, "job-2", "uid-b1", true, kListedAt};
    const auto prepared = prepare();
    ASSERT_TRUE(prepared.has_value());
    EXPECT_EQ(prepared->source, Preparation::Source::kTaken);
    EXPECT_EQ(prepared->current, *options.taken);
    EXPECT_EQ(load_current(*device, folder.path()), *options.taken);
}

TEST_F(PrepareDataset, AnAttemptListsAgainOnRequest) {
    options.job_uid = "job-1";
    options.attempt_uid = "uid-a1";
    const auto before = revision();
    change_dataset();
    options.list_again = true;
    EXPECT_NE(revision(), before);
    EXPECT_EQ(origin.listings(), 2U);
}

TEST_F(PrepareDataset, MarksTheManifestIfTheOptionsAskForIt) {
    EXPECT_TRUE(prepare()->marks.digests.empty());
    options.marks = true;
    EXPECT_EQ(prepare()->marks, domain::mark_manifest(dataset.manifest()));
}

TEST_F(PrepareDataset, ActiveClientsKeepTheirRevision) {
    const auto before = revision();
    change_dataset();
    options.keep_revision = true;
    EXPECT_EQ(revision(), before);
}

TEST_F(PrepareDataset, UsesTheLastListingWhileTheOriginIsDown) {
    const auto before = revision();
    origin.fail_with(Error{ErrorCode::kUnavailable, "503"});
    EXPECT_EQ(revision(), before);
}

TEST_F(PrepareDataset, AJobMayNotUseAnotherJobsListingWhileTheOriginIsDown) {
    options.job_uid = "job-1";
    options.attempt_uid = "uid-a1";
    const auto before = revision();
    origin.fail_with(Error{ErrorCode::kUnavailable, "503"});
    EXPECT_EQ(revision(), before) << "its own";
    options.job_uid = "job-2";
    options.attempt_uid = "uid-b1";
    EXPECT_EQ(prepare().error().code, ErrorCode::kUnavailable);
}

TEST_F(PrepareDataset, ARefusalByTheOriginOverridesTheLastListing) {
    revision();
    origin.fail_with(Error{ErrorCode::kForbidden, "403"});
    const auto refused = prepare();
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error(), (Error{ErrorCode::kForbidden, "403"}));
}

TEST_F(PrepareDataset, AnotherSourceIsAnotherDataset) {
    options.job_uid = "job-1";
    revision();
    options.source = "fake://other";
    revision();
    EXPECT_EQ(origin.listings(), 2U);
}

TEST_F(PrepareDataset, RemakesADamagedManifest) {
    options.job_uid = "job-1";
    const auto before = revision();
    const std::string path =
        folder.path() + "/manifest." + domain::to_string(domain::RevisionId{before});
    const std::vector<std::byte> garbage(200, std::byte{7});
    ASSERT_TRUE(replace_file(*device, path, garbage, Durability::kProcess).has_value());
    EXPECT_EQ(revision(), before);
    EXPECT_EQ(origin.listings(), 2U);
}

TEST_F(PrepareDataset, RemovesOldManifests) {
    revision();
    change_dataset();
    revision();
    EXPECT_EQ(list_manifests(*device, folder.path()).value().size(), 1U);
}

}  // namespace
}  // namespace stoker::sidecar
