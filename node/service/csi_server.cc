#include "node/service/csi_server.h"

#include <chrono>
#include <filesystem>

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>
#include <sys/stat.h>

#include "common/log/log.h"
#include "proto/csi/v1/csi.grpc.pb.h"
#include "proto/kubelet/v1/registration.grpc.pb.h"

namespace stoker::node {

namespace {

namespace csi = ::csi::v1;
namespace kubelet = ::pluginregistration;

constexpr int kMessageBytesMax = 1 << 20;
constexpr mode_t kSocketMode = 0600;
constexpr std::chrono::seconds kPoliteness{2};

// Maps to the gRPC codes that the CSI specification defines.
grpc::Status to_grpc(const Status& status) {
    if (status) {
        return grpc::Status::OK;
    }
    const auto code = [&] {
        switch (status.error().code) {
            case ErrorCode::kInvalidArgument:
                return grpc::StatusCode::INVALID_ARGUMENT;
            case ErrorCode::kNotFound:
                return grpc::StatusCode::NOT_FOUND;
            case ErrorCode::kForbidden:
                return grpc::StatusCode::PERMISSION_DENIED;
            case ErrorCode::kAlreadyExists:
            case ErrorCode::kConflict:
                return grpc::StatusCode::FAILED_PRECONDITION;
            case ErrorCode::kResourceExhausted:
                return grpc::StatusCode::RESOURCE_EXHAUSTED;
            case ErrorCode::kUnavailable:
            case ErrorCode::kDeadlineExceeded:
                return grpc::StatusCode::UNAVAILABLE;
            default:
                return grpc::StatusCode::INTERNAL;
        }
    }();
    return {code, status.error().message};
}

// As grpc-go prints the codes of to_grpc(), for the metrics of CSI.
std::string name_of(grpc::StatusCode code) {
    switch (code) {
        case grpc::StatusCode::OK:
            return "OK";
        case grpc::StatusCode::INVALID_ARGUMENT:
            return "InvalidArgument";
        case grpc::StatusCode::NOT_FOUND:
            return "NotFound";
        case grpc::StatusCode::PERMISSION_DENIED:
            return "PermissionDenied";
        case grpc::StatusCode::FAILED_PRECONDITION:
            return "FailedPrecondition";
        case grpc::StatusCode::RESOURCE_EXHAUSTED:
            return "ResourceExhausted";
        case grpc::StatusCode::UNAVAILABLE:
            return "Unavailable";
        default:
            return "Internal";
    }
}

grpc::Status missing(const char* field) {
    return {grpc::StatusCode::INVALID_ARGUMENT, fmt::format("{} is missing", field)};
}

class Identity final : public csi::Identity::Service {
public:
    explicit Identity(std::string driver)
        : driver_(std::move(driver)) {}

    grpc::Status GetPluginInfo(
        grpc::ServerContext* /*call*/,
        const csi::GetPluginInfoRequest* /*request*/,
        csi::GetPluginInfoResponse* response) override {
        response->set_name(driver_);
        response->set_vendor_version(STOKER_VERSION);
        return grpc::Status::OK;
    }

    grpc::Status GetPluginCapabilities(
        grpc::ServerContext* /*call*/,
        const csi::GetPluginCapabilitiesRequest* /*request*/,
        csi::GetPluginCapabilitiesResponse* /*response*/) override {
        return grpc::Status::OK;
    }

    grpc::Status Probe(
        grpc::ServerContext* /*call*/,
        const csi::ProbeRequest* /*request*/,
        csi::ProbeResponse* /*response*/) override {
        return grpc::Status::OK;
    }

private:
    std::string driver_;
};

class NodeService final : public csi::Node::Service {
public:
    NodeService(std::string node, Publisher& publisher, NodeMetrics& metrics)
        : node_(std::move(node)),
          publisher_(publisher),
          metrics_(metrics) {}

    grpc::Status NodePublishVolume(
        grpc::ServerContext* /*call*/,
        const csi::NodePublishVolumeRequest* request,
        csi::NodePublishVolumeResponse* /*response*/) override {
        return timed("NodePublishVolume", [&] { return publish(request); });
    }

    grpc::Status NodeUnpublishVolume(
        grpc::ServerContext* /*call*/,
        const csi::NodeUnpublishVolumeRequest* request,
        csi::NodeUnpublishVolumeResponse* /*response*/) override {
        return timed("NodeUnpublishVolume", [&] { return unpublish(request); });
    }

    grpc::Status NodeGetCapabilities(
        grpc::ServerContext* /*call*/,
        const csi::NodeGetCapabilitiesRequest* /*request*/,
        csi::NodeGetCapabilitiesResponse* /*response*/) override {
        return grpc::Status::OK;
    }

    grpc::Status NodeGetInfo(
        grpc::ServerContext* /*call*/,
        const csi::NodeGetInfoRequest* /*request*/,
        csi::NodeGetInfoResponse* response) override {
        response->set_node_id(node_);
        return grpc::Status::OK;
    }

private:
    template <class Call>
    grpc::Status timed(const char* method, Call call) {
        const TimePoint begun = clock_.now();
        const grpc::Status status = call();
        metrics_.observe_csi(method, name_of(status.error_code()), clock_.now() - begun);
        return status;
    }

    grpc::Status publish(const csi::NodePublishVolumeRequest* request) {
        if (request->volume_id().empty()) {
            return missing("volume_id");
        }
        if (request->target_path().empty()) {
            return missing("target_path");
        }
        if (!request->has_volume_capability()) {
            return missing("volume_capability");
        }
        if (request->volume_capability().has_block()) {
            return {grpc::StatusCode::INVALID_ARGUMENT, "block volumes are not served"};
        }
        const auto& context = request->volume_context();
        const Status status = publisher_.publish(
            {context.begin(), context.end()}, request->readonly(), request->target_path());
        if (!status) {
            log::warning(
                "view not mounted",
                {{"target", request->target_path()}, {"reason", status.error().message}});
        }
        return to_grpc(status);
    }

    grpc::Status unpublish(const csi::NodeUnpublishVolumeRequest* request) {
        if (request->volume_id().empty()) {
            return missing("volume_id");
        }
        if (request->target_path().empty()) {
            return missing("target_path");
        }
        return to_grpc(publisher_.unpublish(request->target_path()));
    }

    std::string node_;
    Publisher& publisher_;
    NodeMetrics& metrics_;
    SystemClock clock_;
};

class Registration final : public kubelet::Registration::Service {
public:
    Registration(std::string driver, std::string socket)
        : driver_(std::move(driver)),
          socket_(std::move(socket)) {}

    grpc::Status GetInfo(
        grpc::ServerContext* /*call*/,
        const kubelet::InfoRequest* /*request*/,
        kubelet::PluginInfo* response) override {
        response->set_type("CSIPlugin");
        response->set_name(driver_);
        response->set_endpoint(socket_);
        response->add_supported_versions("1.0.0");
        return grpc::Status::OK;
    }

    grpc::Status NotifyRegistrationStatus(
        grpc::ServerContext* /*call*/,
        const kubelet::RegistrationStatus* request,
        kubelet::RegistrationStatusResponse* /*response*/) override {
        if (request->plugin_registered()) {
            log::info("registered with the kubelet", {{"driver", driver_}});
        } else {
            log::error("the kubelet refused the driver", {{"reason", request->error()}});
        }
        return grpc::Status::OK;
    }

private:
    std::string driver_;
    std::string socket_;
};

// Starts a gRPC server on one Unix socket. Replaces a socket of an earlier process.
Result<std::unique_ptr<grpc::Server>> serve(
    const std::string& path, std::initializer_list<grpc::Service*> services) {
    std::error_code ignored;
    std::filesystem::create_directories(std::filesystem::path{path}.parent_path(), ignored);
    std::filesystem::remove(path, ignored);
    grpc::ServerBuilder builder;
    builder.AddListeningPort("unix://" + path, grpc::InsecureServerCredentials());
    builder.SetMaxReceiveMessageSize(kMessageBytesMax);
    for (grpc::Service* service : services) {
        builder.RegisterService(service);
    }
    auto server = builder.BuildAndStart();
    if (server == nullptr || ::chmod(path.c_str(), kSocketMode) != 0) {
        return fail(ErrorCode::kUnavailable, fmt::format("cannot listen on {}", path));
    }
    return server;
}

class GrpcCsiServer final : public CsiServer {
public:
    GrpcCsiServer(const CsiServerOptions& options, Publisher& publisher, NodeMetrics& metrics)
        : csi_socket_(
              fmt::format("{}/plugins/{}/csi.sock", options.kubelet_directory, options.driver)),
          registration_socket_(fmt::format(
              "{}/plugins_registry/{}-reg.sock", options.kubelet_directory, options.driver)),
          identity_(options.driver),
          node_(options.node, publisher, metrics),
          registration_(options.driver, csi_socket_) {}

    // Start the CSI socket first: the kubelet calls it as soon as the registration socket exists.
    Status listen() {
        STOKER_TRY(csi_, serve(csi_socket_, {&identity_, &node_}));
        STOKER_TRY(registry_, serve(registration_socket_, {&registration_}));
        log::info("serving the kubelet", {{"socket", csi_socket_}});
        return {};
    }

    ~GrpcCsiServer() override {
        std::error_code ignored;
        std::filesystem::remove(registration_socket_, ignored);
        for (const auto& server : {&registry_, &csi_}) {
            if (*server != nullptr) {
                (*server)->Shutdown(std::chrono::system_clock::now() + kPoliteness);
                (*server)->Wait();
            }
        }
    }

    GrpcCsiServer(const GrpcCsiServer&) = delete;
    GrpcCsiServer& operator=(const GrpcCsiServer&) = delete;

private:
    std::string csi_socket_;
    std::string registration_socket_;
    Identity identity_;
    NodeService node_;
    Registration registration_;
    std::unique_ptr<grpc::Server> csi_;
    std::unique_ptr<grpc::Server> registry_;
};

}  // namespace

Result<std::unique_ptr<CsiServer>> CsiServer::start(
    const CsiServerOptions& options, Publisher& publisher, NodeMetrics& metrics) {
    auto server = std::make_unique<GrpcCsiServer>(options, publisher, metrics);
    STOKER_TRY_VOID(server->listen());
    return std::unique_ptr<CsiServer>{std::move(server)};
}

}  // namespace stoker::node
