#include "node/service/operator_link.h"

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>

#include "common/base/read_file.h"
#include "proto/node/v1/node.grpc.pb.h"

namespace stoker::node {

namespace {

constexpr int kMessageBytesMax = 16 << 20;  // the list of a sweep: 100,000 names and more

class GrpcOperatorClient final : public OperatorClient {
public:
    explicit GrpcOperatorClient(OperatorAccess access)
        : access_(std::move(access)) {}

    Result<v1::NodeOrders> report(const v1::NodeReport& report, Duration time_limit) override {
        STOKER_TRY(const std::string token, read_filled_file(access_.token_file));
        STOKER_TRY_VOID(dial());
        grpc::ClientContext call;
        call.AddMetadata("authorization", "Bearer " + token);
        call.set_deadline(
            std::chrono::system_clock::now() +
            std::chrono::duration_cast<std::chrono::milliseconds>(time_limit));
        v1::NodeOrders orders;
        const grpc::Status status = stub_->Report(&call, report, &orders);
        if (!status.ok()) {
            stub_.reset();
            return fail(
                ErrorCode::kUnavailable,
                fmt::format(
                    "the operator at {} did not answer: {} (gRPC status {})",
                    access_.endpoint,
                    status.error_message(),
                    static_cast<int>(status.error_code())));
        }
        return orders;
    }

private:
    Status dial() {
        if (stub_ != nullptr) {
            return {};
        }
        grpc::SslCredentialsOptions tls;
        STOKER_TRY(tls.pem_root_certs, read_filled_file(access_.ca_file));
        grpc::ChannelArguments arguments;
        arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
        arguments.SetMaxReceiveMessageSize(kMessageBytesMax);
        stub_ = v1::Nodes::NewStub(
            grpc::CreateCustomChannel(access_.endpoint, grpc::SslCredentials(tls), arguments));
        return {};
    }

    OperatorAccess access_;
    std::unique_ptr<v1::Nodes::Stub> stub_;
};

}  // namespace

std::unique_ptr<OperatorClient> make_operator_client(OperatorAccess access) {
    return std::make_unique<GrpcOperatorClient>(std::move(access));
}

}  // namespace stoker::node
