#include "operator/sidecars/control_service.h"

#include <mutex>
#include <shared_mutex>
#include <utility>

#include <absl/synchronization/mutex.h>
#include <grpc/support/log.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/server_builder.h>

#include "common/log/log.h"
#include "operator/sidecars/attach_call.h"
#include "operator/sidecars/connection_gate.h"
#include "operator/sidecars/node_service.h"
#include "operator/sidecars/reloading_credentials.h"
#include "proto/control/v1/control.grpc.pb.h"

namespace stoker::control {

namespace {

constexpr int kKeepaliveMs = 20'000;
constexpr int kKeepaliveTimeoutMs = 10'000;
constexpr int kPingIntervalMinMs = 5'000;
constexpr int kStreamsPerConnectionMax = 8;
constexpr int kHandshakeTimeoutMs = 10'000;
constexpr int kIdleTimeoutMs = 60'000;  // without a stream
constexpr int kMetadataBytesMax = 20 * 1024;
constexpr std::chrono::seconds kPoliteness{2};

// Writes gRPC's log to our debug log: any client can cause lines in it, such as one per failed
// handshake.
void log_words_of_grpc(gpr_log_func_args* words) {
    log::debug("grpc", {{"message", words->message}});
}

class AttachHandler final : public v1::Control::WithRawCallbackMethod_Attach<v1::Control::Service> {
public:
    AttachHandler(AttachContext context, std::size_t session_count_max)
        : sessions(session_count_max, "too many sidecars"),
          context_(std::move(context)) {}

    grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* Attach(
        grpc::CallbackServerContext* call) override {
        return sessions.begin(std::make_shared<AttachCall>(context_, *call));
    }

    LiveCalls sessions;

private:
    const AttachContext context_;
};

class GrpcControlService final : public ControlService {
public:
    GrpcControlService(
        AttachContext context,
        NodeCallContext nodes,
        const ControlServiceOptions& options,
        std::unique_ptr<ConnectionGate> gate)
        : gate_(std::move(gate)),
          handler_(with_gate(std::move(context)), options.session_count_max),
          nodes_(with_gate(std::move(nodes)), options.node_call_count_max) {
        // Debian builds Abseil with its check for deadlocks, which takes 8 % of the operator's
        // processor time while sidecars attach.
        absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
    }

    Status serve(const ControlServiceOptions& options) {
        const auto report_bytes = static_cast<int>(options.node_report_bytes_max.count());
        const auto orders_bytes = static_cast<int>(options.node_orders_bytes_max.count());
        grpc::ServerBuilder builder;
        credentials_ = reloading_credentials(options.certificate);
        acceptor_ = builder.experimental().AddExternalConnectionAcceptor(
            grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD, credentials_);
        builder.RegisterService(&handler_);
        builder.RegisterCallbackGenericService(&nodes_);
        builder.SetMaxReceiveMessageSize(report_bytes);
        builder.SetMaxSendMessageSize(orders_bytes);
        builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMs);
        builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMs);
        builder.AddChannelArgument(
            GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, kPingIntervalMinMs);
        builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kStreamsPerConnectionMax);
        builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshakeTimeoutMs);
        builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, kIdleTimeoutMs);
        builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, kMetadataBytesMax);
        server_ = builder.BuildAndStart();
        if (server_ == nullptr) {
            return fail(ErrorCode::kUnavailable, "the gRPC server could not be started");
        }
        port_ = gate_->port();
        gate_->start([this](int listener, int connection) {
            grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters parameters;
            parameters.listener_fd = listener;
            parameters.fd = connection;
            acceptor_->HandleNewConnection(&parameters);
        });
        return {};
    }

    ~GrpcControlService() override {
        if (server_ != nullptr) {
            {
                const std::unique_lock lock(gate_mutex_);
                gate_.reset();
            }
            handler_.sessions.close();
            nodes_.close();
            server_->Shutdown(std::chrono::system_clock::now() + kPoliteness);
            server_->Wait();
        }
    }

    [[nodiscard]] std::uint16_t port() const override { return port_; }

    void step(TimePoint now) override { handler_.sessions.step(now); }

    [[nodiscard]] std::size_t session_count() const override { return handler_.sessions.count(); }

    [[nodiscard]] std::size_t half_open_count() const override { return gate_->half_open(); }

private:
    template <class Context>
    Context with_gate(Context context) {
        context.admit = [this](const std::string& peer) {
            const std::shared_lock lock(gate_mutex_);
            if (gate_) {
                gate_->admit(peer);
            }
        };
        return context;
    }

    std::shared_mutex gate_mutex_;  // protects the end of gate_
    std::unique_ptr<ConnectionGate> gate_;
    mutable AttachHandler handler_;
    NodeService nodes_;
    std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor_;
    std::shared_ptr<grpc::ServerCredentials> credentials_;
    std::unique_ptr<grpc::Server> server_;
    std::uint16_t port_ = 0;
};

}  // namespace

Result<std::unique_ptr<ControlService>> ControlService::start(
    ControlServiceOptions options,
    SidecarRegistry& registry,
    NodePrograms nodes,
    Authenticator& authenticator,
    const Clock& clock) {
    gpr_set_log_function(&log_words_of_grpc);
    const ServedCertificatePtr certificate = options.certificate();
    if (certificate == nullptr) {
        return fail(ErrorCode::kNotFound, "there is no certificate yet");
    }
    STOKER_TRY_VOID(check_pair(certificate->leaf));
    const CallContext context{authenticator, clock};
    STOKER_TRY(
        auto gate,
        ConnectionGate::open(
            options.listen, {options.half_open_max, options.half_open_timeout}, clock));
    NodeRegistry& reports = nodes.registry;
    auto service = std::make_unique<GrpcControlService>(
        AttachContext{
            context,
            {registry, clock, options.hello_timeout, options.reports_per_step, options.signs_peers},
            options.message_bytes_max.count()},
        NodeCallContext{context, std::move(nodes)},
        options,
        std::move(gate));
    STOKER_TRY_VOID(service->serve(options));
    reports.listen(clock.now());
    return service;
}

}  // namespace stoker::control
