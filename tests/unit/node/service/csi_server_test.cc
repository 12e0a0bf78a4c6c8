#include "node/service/csi_server.h"

#include <filesystem>

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/csi/v1/csi.grpc.pb.h"
#include "proto/kubelet/v1/registration.grpc.pb.h"
#include "tests/support/temp_folder.h"
#include "tests/unit/node/service/fakes.h"

namespace stoker::node {
namespace {

class Csi : public ::testing::Test {
protected:
    [[nodiscard]] std::string csi_socket() const {
        return folder_.path() + "/plugins/csi.stoker.dev/csi.sock";
    }

    [[nodiscard]] std::string registration_socket() const {
        return folder_.path() + "/plugins_registry/csi.stoker.dev-reg.sock";
    }

    static std::shared_ptr<grpc::Channel> dial(const std::string& socket) {
        return grpc::CreateChannel("unix://" + socket, grpc::InsecureChannelCredentials());
    }

    grpc::Status publish(const ::csi::v1::NodePublishVolumeRequest& request) {
        grpc::ClientContext call;
        ::csi::v1::NodePublishVolumeResponse response;
        return ::csi::v1::Node::NewStub(dial(csi_socket()))
            ->NodePublishVolume(&call, request, &response);
    }

    static ::csi::v1::NodePublishVolumeRequest request() {
        ::csi::v1::NodePublishVolumeRequest result;
        result.set_volume_id("v1");
        result.set_target_path("/target");
        result.mutable_volume_capability()->mutable_mount();
        result.set_readonly(true);
        for (const auto& [key, value] : test::context("data")) {
            (*result.mutable_volume_context())[key] = value;
        }
        return result;
    }

    stoker::test::TempFolder folder_;
    UniqueFd root_{::open(folder_.path().c_str(), O_RDONLY | O_DIRECTORY)};
    test::FakeFacts facts_;
    test::FakeMounts mounts_;
    FileMounts files_{folder_.path() + "/files", {::geteuid(), ::getegid()}, mounts_};
    NodeMetrics metrics_;
    Publisher publisher_{{facts_, mounts_, files_, root_.get(), {::geteuid(), ::getegid()}}};
    std::unique_ptr<CsiServer> server_ =
        CsiServer::start({"node-1", "csi.stoker.dev", folder_.path()}, publisher_, metrics_)
            .value();
};

TEST_F(Csi, RegistersItsSocketWithTheKubelet) {
    grpc::ClientContext call;
    ::pluginregistration::PluginInfo info;
    const auto stub = ::pluginregistration::Registration::NewStub(dial(registration_socket()));
    ASSERT_TRUE(stub->GetInfo(&call, {}, &info).ok());
    EXPECT_EQ(info.type(), "CSIPlugin");
    EXPECT_EQ(info.name(), "csi.stoker.dev");
    EXPECT_EQ(info.endpoint(), csi_socket());
    EXPECT_EQ(info.supported_versions(0), "1.0.0");
}

TEST_F(Csi, ReportsItsNameAndNode) {
    grpc::ClientContext first;
    ::csi::v1::GetPluginInfoResponse plugin;
    ASSERT_TRUE(
        ::csi::v1::Identity::NewStub(dial(csi_socket()))->GetPluginInfo(&first, {}, &plugin).ok());
    EXPECT_EQ(plugin.name(), "csi.stoker.dev");
    EXPECT_FALSE(plugin.vendor_version().empty());
    grpc::ClientContext second;
    ::csi::v1::NodeGetInfoResponse node;
    ASSERT_TRUE(::csi::v1::Node::NewStub(dial(csi_socket()))->NodeGetInfo(&second, {}, &node).ok());
    EXPECT_EQ(node.node_id(), "node-1");
}

TEST_F(Csi, PublishesAndUnpublishes) {
    ASSERT_TRUE(publish(request()).ok());
    EXPECT_TRUE(mounts_.table.contains("/target"));
    grpc::ClientContext call;
    ::csi::v1::NodeUnpublishVolumeRequest back;
    back.set_volume_id("v1");
    back.set_target_path("/target");
    ::csi::v1::NodeUnpublishVolumeResponse response;
    ASSERT_TRUE(::csi::v1::Node::NewStub(dial(csi_socket()))
                    ->NodeUnpublishVolume(&call, back, &response)
                    .ok());
    EXPECT_TRUE(mounts_.table.empty());
}

TEST_F(Csi, TimesCallsByTheirResult) {
    ASSERT_TRUE(publish(request()).ok());
    auto bad = request();
    bad.clear_target_path();
    ASSERT_FALSE(publish(bad).ok());
    const std::string told = metrics_.expose();
    for (const char* code : {"OK", "InvalidArgument"}) {
        EXPECT_THAT(
            told,
            ::testing::HasSubstr(fmt::format(
                R"(stoker_node_csi_seconds_count{{method_name="NodePublishVolume",grpc_status_code="{}"}} 1)",
                code)));
    }
}

TEST_F(Csi, RefusesIncompleteRequests) {
    auto bad = request();
    bad.clear_volume_id();
    EXPECT_EQ(publish(bad).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    bad = request();
    bad.clear_target_path();
    EXPECT_EQ(publish(bad).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    bad = request();
    bad.clear_volume_capability();
    EXPECT_EQ(publish(bad).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    bad = request();
    bad.mutable_volume_capability()->mutable_block();
    EXPECT_EQ(publish(bad).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(Csi, ErrorsUseTheSpecificationsCodes) {
    auto foreign = request();
    (*foreign.mutable_volume_context())["csi.storage.k8s.io/pod.namespace"] = "stranger";
    EXPECT_EQ(publish(foreign).error_code(), grpc::StatusCode::PERMISSION_DENIED);
    std::filesystem::create_directories(folder_.path() + "/mnt/nvme/photos");
    const grpc::Status refused = publish(request());
    EXPECT_EQ(refused.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
    EXPECT_NE(refused.error_message().find("photos"), std::string::npos);
}

TEST_F(Csi, SocketsAreForRootOnlyAndRemovedAtTheEnd) {
    for (const std::string& socket : {csi_socket(), registration_socket()}) {
        struct stat status {};

        ASSERT_EQ(::stat(socket.c_str(), &status), 0) << socket;
        EXPECT_EQ(status.st_mode & 0777U, 0600U);
    }
    server_.reset();
    EXPECT_FALSE(std::filesystem::exists(csi_socket()));
    EXPECT_FALSE(std::filesystem::exists(registration_socket()));
}

TEST_F(Csi, ReplacesSocketsOfAKilledProcess) {
    auto second =
        CsiServer::start({"node-1", "csi.stoker.dev", folder_.path()}, publisher_, metrics_);
    ASSERT_TRUE(second) << second.error().message;
    EXPECT_TRUE(publish(request()).ok());
}

}  // namespace
}  // namespace stoker::node
