#include "operator/agents/control_service.h"

#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <grpc/support/log.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/security/tls_credentials_options.h>

#include "common/log/log.h"
#include "operator/agents/attach_session.h"
#include "operator/agents/server_certificate.h"

namespace stoker::control {

namespace {

constexpr int kKeepaliveMs = 20'000;
constexpr int kKeepaliveTimeoutMs = 10'000;
constexpr int kPingIntervalMinMs = 5'000;
constexpr int kStreamsPerConnectionMax = 8;
constexpr std::chrono::seconds kPoliteness{2};

std::shared_ptr<grpc::ServerCredentials> make_credentials(
    const CertificateFiles& files, std::chrono::seconds refresh) {
    // Reads the files again by itself; running connections keep what they have.
    auto provider = std::make_shared<grpc::experimental::FileWatcherCertificateProvider>(
        files.key, files.certificate, static_cast<unsigned>(refresh.count()));
    grpc::experimental::TlsServerCredentialsOptions options(provider);
    options.watch_identity_key_cert_pairs();
    options.set_cert_request_type(GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE);
    return grpc::experimental::TlsServerCredentials(options);
}

// gRPC's own words, such as one line for each failed handshake, go where ours go; anybody can cause
// them.
void log_words_of_grpc(gpr_log_func_args* words) {
    log::debug("grpc", {{"message", words->message}});
}

// Makes the sessions and knows them while they live.
class AttachHandler final : public v1::Control::CallbackService {
public:
    AttachHandler(SessionContext context, std::size_t session_count_max)
        : context_(context),
          session_count_max_(session_count_max) {}

    grpc::ServerBidiReactor<v1::SidecarMessage, v1::OperatorMessage>* Attach(
        grpc::CallbackServerContext* call) override {
        auto session = std::make_shared<AttachSession>(context_, *call);
        AttachSession* raw = session.get();
        bool refused = false;
        std::uint64_t id = 0;
        {
            const std::lock_guard lock(mutex_);
            refused = closing_ || sessions_.size() >= session_count_max_;
            id = next_id_++;
            sessions_[id] = session;
        }
        session->begin([this, id] { forget(id); }, refused);
        return raw;
    }

    void step(TimePoint now) {
        for (const auto& session : living()) {
            session->step(now);
        }
    }

    void close() {
        {
            const std::lock_guard lock(mutex_);
            closing_ = true;
        }
        for (const auto& session : living()) {
            session->finish({grpc::StatusCode::UNAVAILABLE, "the operator stops"});
        }
    }

    std::size_t session_count() {
        const std::lock_guard lock(mutex_);
        return sessions_.size();
    }

private:
    std::vector<std::shared_ptr<AttachSession>> living() {
        std::vector<std::shared_ptr<AttachSession>> sessions;
        const std::lock_guard lock(mutex_);
        for (const auto& [id, weak] : sessions_) {
            if (auto session = weak.lock()) {
                sessions.push_back(std::move(session));
            }
        }
        return sessions;
    }

    void forget(std::uint64_t id) {
        const std::lock_guard lock(mutex_);
        sessions_.erase(id);
    }

    SessionContext context_;
    std::size_t session_count_max_;
    std::mutex mutex_;
    std::map<std::uint64_t, std::weak_ptr<AttachSession>> sessions_;
    std::uint64_t next_id_ = 0;
    bool closing_ = false;
};

class GrpcControlService final : public ControlService {
public:
    GrpcControlService(SessionContext context, std::size_t session_count_max)
        : handler_(context, session_count_max) {}

    Status listen(const ControlServiceOptions& options, const CertificateFiles& files) {
        const auto message_bytes = static_cast<int>(options.message_bytes_max.count());
        grpc::ServerBuilder builder;
        int port = 0;
        builder.AddListeningPort(
            options.listen, make_credentials(files, options.certificate_refresh), &port);
        builder.RegisterService(&handler_);
        builder.SetMaxReceiveMessageSize(message_bytes);
        builder.SetMaxSendMessageSize(message_bytes);
        builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMs);
        builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMs);
        builder.AddChannelArgument(
            GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, kPingIntervalMinMs);
        builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kStreamsPerConnectionMax);
        // Two leaders on one port would be two truths.
        builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
        server_ = builder.BuildAndStart();
        if (server_ == nullptr || port == 0) {
            return fail(
                ErrorCode::kUnavailable, fmt::format("cannot listen on {}", options.listen));
        }
        port_ = static_cast<std::uint16_t>(port);
        return {};
    }

    ~GrpcControlService() override {
        if (server_ != nullptr) {
            handler_.close();
            server_->Shutdown(std::chrono::system_clock::now() + kPoliteness);
            server_->Wait();
        }
    }

    [[nodiscard]] std::uint16_t port() const override { return port_; }

    void step(TimePoint now) override { handler_.step(now); }

    [[nodiscard]] std::size_t session_count() const override { return handler_.session_count(); }

private:
    mutable AttachHandler handler_;
    std::unique_ptr<grpc::Server> server_;
    std::uint16_t port_ = 0;
};

}  // namespace

Result<std::unique_ptr<ControlService>> ControlService::start(
    ControlServiceOptions options,
    AgentRegistry& registry,
    Authenticator& authenticator,
    const Clock& clock) {
    gpr_set_log_function(&log_words_of_grpc);
    STOKER_TRY(const CertificateFiles files, find_certificate(options.certificate_directory));
    const SessionContext context{
        registry, authenticator, clock, options.hello_timeout, options.reports_per_step};
    auto service = std::make_unique<GrpcControlService>(context, options.session_count_max);
    STOKER_TRY_VOID(service->listen(options, files));
    return service;
}

}  // namespace stoker::control
