#include "node/core/view_request.h"

#include <gtest/gtest.h>

namespace stoker::node {
namespace {

std::map<std::string, std::string> context(const std::string& view) {
    return {
        {"csi.storage.k8s.io/ephemeral", "true"},
        {"csi.storage.k8s.io/pod.namespace", "team"},
        {"csi.storage.k8s.io/pod.name", "resnet-0"},
        {"csi.storage.k8s.io/pod.uid", "pod-uid"},
        {"pool", "nvme"},
        {"namespace", "team"},
        {"uid", "d1"},
        {"dataset", "imagenet"},
        {"view", view}};
}

TEST(ViewRequest, ParsesTheKubeletsContext) {
    const auto request = parse_view_request(context("data"), true);
    ASSERT_TRUE(request);
    EXPECT_EQ(
        *request,
        (ViewRequest{
            View::kData, "nvme", {"team", "d1"}, "imagenet", {"team", "resnet-0", "pod-uid"}}));
    EXPECT_FALSE(request->is_foreign());
}

TEST(ViewRequest, IsForeignIfPodAndDatasetNamespacesDiffer) {
    auto given = context("shared");
    given["namespace"] = "data";
    EXPECT_TRUE(parse_view_request(given, true)->is_foreign());
}

TEST(ViewRequest, EveryViewButOwnerRequiresAReadOnlyVolume) {
    for (const char* view : {"data", "shared", "guest"}) {
        auto given = context(view);
        given["namespace"] = std::string{view} == "guest" ? "data" : "team";
        EXPECT_TRUE(parse_view_request(given, true)) << view;
        const auto writable = parse_view_request(given, false);
        ASSERT_FALSE(writable) << view;
        EXPECT_NE(writable.error().message.find("csi.readOnly: true"), std::string::npos);
    }
    EXPECT_TRUE(parse_view_request(context("owner"), false));
    EXPECT_FALSE(parse_view_request(context("owner"), true));
}

TEST(ViewRequest, FilesViewsRequireAPodUidADatasetUidAndAReadOnlyVolume) {
    for (const char* view : {"files", "files-server"}) {
        auto right = context(view);
        EXPECT_FALSE(parse_view_request(right, true)) << "d1 is no Dataset's uid";
        right["uid"] = "0d1f4c5e-7a3b-4f7e-9c1d-0123456789ab";
        const auto request = parse_view_request(right, true);
        ASSERT_TRUE(request) << view;
        EXPECT_TRUE(request->is_of_files());
        EXPECT_FALSE(parse_view_request(right, false)) << "it is read-only";
        for (const char* uid : {"", "..", "a/b"}) {
            auto given = right;
            given["csi.storage.k8s.io/pod.uid"] = uid;
            EXPECT_FALSE(parse_view_request(given, true)) << uid;
        }
    }
    EXPECT_FALSE(parse_view_request(context("data"), true)->is_of_files());
}

TEST(ViewRequest, ViewOwnerIsForTheDatasetsNamespaceAndViewGuestForOthers) {
    auto given = context("owner");
    given["namespace"] = "data";
    EXPECT_EQ(parse_view_request(given, false).error().code, ErrorCode::kForbidden);
    EXPECT_FALSE(parse_view_request(context("guest"), true));
}

TEST(ViewRequest, BuildsTheNodeDirectoryName) {
    EXPECT_TRUE(is_dataset_uid("0d1f4c5e-7a3b-4f7e-9c1d-0123456789ab"));
    EXPECT_TRUE(is_dataset_uid("inline-0123456789abcdef"));
    for (const char* other : {"", "notes", "inline-0123", "0D1F4C5E-7A3B-4F7E-9C1D-0123456789AB"}) {
        EXPECT_FALSE(is_dataset_uid(other)) << other;
    }
}

TEST(ViewRequest, RejectsPersistentVolumes) {
    auto given = context("data");
    given["csi.storage.k8s.io/ephemeral"] = "false";
    EXPECT_FALSE(parse_view_request(given, true));
    given.erase("csi.storage.k8s.io/ephemeral");
    EXPECT_FALSE(parse_view_request(given, true));
}

TEST(ViewRequest, RejectsNamesThatLeaveTheirFolder) {
    for (const char* key : {"pool", "namespace", "uid", "dataset"}) {
        for (const std::string& value :
             {std::string{"../x"},
              std::string{".."},
              std::string{"."},
              std::string{"a/b"},
              std::string{},
              std::string{"A"},
              std::string{"a\0b", 3},
              std::string(254, 'a')}) {
            auto given = context("data");
            given[key] = value;
            EXPECT_FALSE(parse_view_request(given, true)) << key << "=" << value;
        }
    }
}

TEST(ViewRequest, RequiresAllAttributesExceptTheDataset) {
    for (const char* key :
         {"pool", "namespace", "uid", "view", "csi.storage.k8s.io/pod.namespace"}) {
        auto given = context("data");
        given.erase(key);
        EXPECT_FALSE(parse_view_request(given, true)) << key;
    }
    auto inline_dataset = context("data");
    inline_dataset.erase("dataset");
    EXPECT_EQ(parse_view_request(inline_dataset, true)->dataset, "");
    EXPECT_FALSE(parse_view_request(context("all"), true));
}

}  // namespace
}  // namespace stoker::node
