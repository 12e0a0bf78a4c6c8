#include "operator/core/spec/check_origins.h"

#include <gtest/gtest.h>

namespace stoker::control {
namespace {

ResolvedDataset dataset(const std::string& uri, const std::string& secret = "") {
    ResolvedDataset result;
    result.name = "train";
    result.ns = "team";
    result.source.storage_uri = uri;
    if (!secret.empty()) {
        result.source.secret_ref = secret;
    }
    return result;
}

TEST(CheckOrigins, AllowsOneSecretForS3AndOneForWebServers) {
    std::vector<ResolvedDataset> datasets = {
        dataset("s3://abc/a", "keys"), dataset("https://h/a", "password"), dataset("s3://abc/b")};
    EXPECT_TRUE(check_secrets(datasets, "team").empty());
    datasets.push_back(dataset("https://h/b", "token"));
    const Blocker blocker = check_secrets(datasets, "team");
    EXPECT_EQ(blocker.reason, "SecretsDiffer");
    EXPECT_NE(
        blocker.message.find("on web servers name different Secrets (password, token)"),
        std::string::npos)
        << blocker.message;
    EXPECT_TRUE(check_secrets(datasets, "other").empty());
}

TEST(CheckOrigins, AdvisesASecretForAnotherNamespacesS3OriginOnly) {
    const std::string s3 = tell_credentials(dataset("s3://abc/a", "keys"), "other");
    EXPECT_NE(s3.find("with a Secret keys in namespace other"), std::string::npos) << s3;
    const std::string web = tell_credentials(dataset("https://h/a", "keys"), "other");
    EXPECT_EQ(web.find("with a Secret"), std::string::npos) << web;
    EXPECT_NE(web.find("gets none of the job's"), std::string::npos) << web;
    EXPECT_EQ(tell_credentials(dataset("https://h/a", "keys"), "team"), "");
}

TEST(CheckOrigins, ReadsWebServersWithSdkAndFilesOnly) {
    ResolvedDataset server = dataset("https://h/a");
    for (const DatasetAccess access : {DatasetAccess::kSdk, DatasetAccess::kFiles}) {
        server.access = access;
        EXPECT_TRUE(check_access({server}).empty());
    }
    server.access = DatasetAccess::kS3;
    const Blocker blocker = check_access({server});
    EXPECT_EQ(blocker.reason, "AccessUnsupported");
    EXPECT_NE(blocker.message.find("is a web server"), std::string::npos) << blocker.message;
}

}  // namespace
}  // namespace stoker::control
