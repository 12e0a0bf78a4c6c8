#include "node/service/publisher.h"

#include <filesystem>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/support/temp_folder.h"
#include "tests/unit/node/service/fakes.h"

namespace stoker::node {
namespace {

class PublisherTest : public ::testing::Test {
protected:
    Status publish(const std::string& view, bool read_only, const std::string& pod_ns = "team") {
        auto context = test::context(view, pod_ns);
        if (view == "files") {
            context["uid"] = "0d1f4c5e-7a3b-4f7e-9c1d-0123456789ab";
        }
        return publisher_.publish(context, read_only, "/target");
    }

    stoker::test::TempFolder folder_;
    UniqueFd root_{::open(folder_.path().c_str(), O_RDONLY | O_DIRECTORY)};
    test::FakeFacts facts_;
    test::FakeMounts mounts_;
    stoker::test::TempFolder kubelet_;
    FileMounts files_{kubelet_.path() + "/files", {::geteuid(), ::getegid()}, mounts_};
    Publisher publisher_{{facts_, mounts_, files_, root_.get(), {::geteuid(), ::getegid()}}};
};

TEST_F(PublisherTest, OnlyViewOwnerIsMountedWritable) {
    ASSERT_TRUE(publish("owner", false));
    EXPECT_EQ(mounts_.table.at("/target").access, Access::kReadWrite);
    mounts_.table.clear();
    ASSERT_TRUE(publish("data", true));
    EXPECT_EQ(mounts_.table.at("/target").access, Access::kReadOnly);
}

TEST_F(PublisherTest, RefusesOtherNamespacesUnlessTheDatasetIsShared) {
    for (const auto& [view, read_only] :
         {std::pair{"data", true},
          std::pair{"shared", true},
          std::pair{"guest", true},
          std::pair{"owner", false}}) {
        const Status refused = publish(view, read_only, "stranger");
        ASSERT_FALSE(refused) << view;
        EXPECT_EQ(refused.error().code, ErrorCode::kForbidden) << view;
    }
    EXPECT_TRUE(mounts_.table.empty());
    EXPECT_TRUE(std::filesystem::is_empty(folder_.path())) << "nothing was made for a stranger";
    facts_.shared_with = {"guest"};
    EXPECT_TRUE(publish("shared", true, "guest"));
    EXPECT_TRUE(publish("guest", true, "guest"));
    EXPECT_EQ(mounts_.table.at("/target").access, Access::kReadOnly);
}

TEST_F(PublisherTest, RefusesViewOwnerToANamespaceThatTheDatasetIsSharedWith) {
    facts_.shared_with = {"guest"};
    EXPECT_EQ(publish("owner", false, "guest").error().code, ErrorCode::kForbidden);
    EXPECT_TRUE(mounts_.table.empty());
}

TEST_F(PublisherTest, RejectsInvalidVolumesWithoutARequest) {
    EXPECT_FALSE(publish("data", false));
    EXPECT_FALSE(publisher_.publish(test::context("data"), true, "relative"));
    EXPECT_FALSE(publisher_.publish(test::context("data"), true, "/pods/../../etc"));
    EXPECT_EQ(facts_.asked, 0);
}

TEST_F(PublisherTest, ErrorNamesThePoolWhosePathIsRefused) {
    facts_.pools["nvme"] = "/etc";
    const Status refused = publish("data", true);
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().message.find("CachePool nvme: /etc"), std::string::npos)
        << refused.error().message;
    facts_.pools.clear();
    EXPECT_EQ(publish("data", true).error().code, ErrorCode::kNotFound);
}

TEST_F(PublisherTest, FilesNeedNoDirectoryOfThePool) {
    facts_.pools.clear();
    ASSERT_TRUE(publish("files", true));
    EXPECT_TRUE(mounts_.table.contains("/target"));
    EXPECT_EQ(publish("files", true, "stranger").error().code, ErrorCode::kForbidden);
    ASSERT_TRUE(publisher_.unpublish("/target"));
    EXPECT_TRUE(std::filesystem::is_empty(kubelet_.path() + "/files"));
}

TEST_F(PublisherTest, PublishIsIdempotentAndReversible) {
    ASSERT_TRUE(publish("data", true));
    ASSERT_TRUE(publish("data", true));
    ASSERT_TRUE(publisher_.unpublish("/target"));
    ASSERT_TRUE(publisher_.unpublish("/target"));
    EXPECT_TRUE(mounts_.table.empty());
}

}  // namespace
}  // namespace stoker::node
