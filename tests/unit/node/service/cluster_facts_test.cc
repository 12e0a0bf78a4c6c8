#include "node/service/cluster_facts.h"

#include <gtest/gtest.h>

#include "tests/support/fake_api_client.h"
#include "tests/support/manual_clock.h"

namespace stoker::node {
namespace {

class Facts : public ::testing::Test {
protected:
    void put(const control::ObjectKey& key, const std::string& json) {
        client_.objects[key] = *control::read_object(*control::Json::parse(json));
    }

    void put_dataset(const std::string& sharing) {
        put({"data", "imagenet"},
            R"({"metadata":{"name":"imagenet","namespace":"data","uid":"d1"},"spec":{"sources":)"
            R"([{"storageUri":"s3://b"}])" +
                sharing + "}}");
    }

    Status check(const std::string& dataset = "imagenet", const std::string& uid = "d1") {
        return facts_.check_shared(
            {View::kShared, "nvme", {"data", uid}, dataset, {"guest", "pod", "p"}});
    }

    stoker::test::FakeApiClient client_;
    testing::ManualClock clock_;
    ApiFacts facts_{client_, clock_, {"stoker-system", "stoker-node"}};
};

constexpr const char* kForGuests =
    R"(,"sharing":{"namespaceSelector":{"matchLabels":{"team":"guest"}}})";

TEST_F(Facts, KeepAPoolsPathForAWhile) {
    put({"", "nvme"},
        R"({"metadata":{"name":"nvme"},"spec":{"volume":{"hostPath":{"path":"/mnt/nvme"}}}})");
    EXPECT_EQ(facts_.pool_path("nvme").value_or(""), "/mnt/nvme");
    EXPECT_EQ(facts_.pool_path("nvme").value_or(""), "/mnt/nvme");
    EXPECT_EQ(client_.count("get"), 1U);
    clock_.advance(ApiFacts::kRemember);
    EXPECT_TRUE(facts_.pool_path("nvme"));
    EXPECT_EQ(client_.count("get"), 2U);
    EXPECT_EQ(facts_.pool_path("other").error().code, ErrorCode::kNotFound);
}

TEST_F(Facts, AdmitANamespaceWhoseLabelsTheDatasetSelects) {
    put_dataset(kForGuests);
    put({"", "guest"}, R"({"metadata":{"name":"guest","labels":{"team":"guest"}}})");
    EXPECT_TRUE(check());
}

TEST_F(Facts, RefuseOtherNamespaces) {
    put({"", "guest"}, R"({"metadata":{"name":"guest","labels":{"team":"other"}}})");
    EXPECT_EQ(check().error().code, ErrorCode::kForbidden) << "there is no such Dataset";
    const std::string words = check().error().message;
    put_dataset("");
    EXPECT_EQ(check().error().message, words) << "whether it exists is not told";
    put_dataset(kForGuests);
    EXPECT_EQ(check().error().code, ErrorCode::kForbidden) << "other labels";
    put({"", "guest"}, R"({"metadata":{"name":"guest","labels":{"team":"guest"}}})");
    EXPECT_TRUE(check());
    EXPECT_EQ(check("imagenet", "d2").error().code, ErrorCode::kForbidden)
        << "the uid of another dataset under the name of a shared one";
    EXPECT_EQ(check("", "d1").error().code, ErrorCode::kForbidden) << "inline datasets";
}

TEST_F(Facts, DistinguishUninstallationFromRestart) {
    put({"", "stoker-system"}, R"({"metadata":{"name":"stoker-system"}})");
    EXPECT_TRUE(facts_.is_uninstalled()) << "the DaemonSet is gone";
    put({"stoker-system", "stoker-node"}, R"({"metadata":{"name":"stoker-node"}})");
    EXPECT_FALSE(facts_.is_uninstalled());
    put({"stoker-system", "stoker-node"},
        R"({"metadata":{"name":"stoker-node","deletionTimestamp":"2026-01-31T12:00:00Z"}})");
    EXPECT_TRUE(facts_.is_uninstalled());
    put({"stoker-system", "stoker-node"}, R"({"metadata":{"name":"stoker-node"}})");
    EXPECT_FALSE(facts_.is_uninstalled());
    put({"", "stoker-system"},
        R"({"metadata":{"name":"stoker-system","deletionTimestamp":"2026-01-31T12:00:00Z"}})");
    EXPECT_TRUE(facts_.is_uninstalled()) << "the namespace goes, and takes the DaemonSet with it";
}

}  // namespace
}  // namespace stoker::node
