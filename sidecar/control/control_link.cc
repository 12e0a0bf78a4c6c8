#include "sidecar/control/control_link.h"

#include <condition_variable>
#include <mutex>
#include <thread>

#include <grpcpp/grpcpp.h>

#include "common/base/read_file.h"
#include "common/log/log.h"
#include "common/runtime/named_thread.h"
#include "proto/control/v1/control.grpc.pb.h"

namespace stoker::sidecar {

namespace {

namespace wire = ::stoker::control::v1;

using Stream = grpc::ClientReaderWriter<wire::SidecarMessage, wire::OperatorMessage>;

// Largest message accepted from the operator: groups may have thousands of nodes.
constexpr int kMessageBytesMax = 16 << 20;

Result<std::string> read_ca(const ControlConfig& settings) {
    if (!settings.ca_file.empty()) {
        return read_filled_file(settings.ca_file);
    }
    if (settings.ca_pem.empty()) {
        return fail(
            ErrorCode::kInvalidArgument,
            "control.endpoint is set, but neither control.caFile nor $STOKER_CONTROL_CA");
    }
    return settings.ca_pem;
}

class GrpcLink final : public ControlLink {
public:
    GrpcLink(
        ControlConfig settings,
        const JobConfig& job,
        const std::vector<DatasetConfig>& datasets,
        LinkCallbacks callbacks,
        LinkOptions options)
        : settings_(std::move(settings)),
          farewell_(options.farewell),
          session_(job, datasets, std::move(callbacks), options) {
        thread_ = start_thread("control-link", [this](const std::stop_token& stop) { run(stop); });
    }

    ~GrpcLink() override;
    GrpcLink(const GrpcLink&) = delete;
    GrpcLink& operator=(const GrpcLink&) = delete;

    [[nodiscard]] bool is_attached() const override { return session_.is_attached(); }

private:
    void run(const std::stop_token& stop);
    // Runs one connection; returns the status with which it ended.
    grpc::Status attach(const std::stop_token& stop);
    void read_grants(Stream& stream);
    void send_reports(Stream& stream, const std::stop_token& stop);
    bool pause(Duration length, const std::stop_token& stop);
    std::shared_ptr<grpc::Channel> dial(const std::string& ca) const;
    void tell(const grpc::Status& status);

    const ControlConfig settings_;
    const Duration farewell_;
    const SystemClock clock_;
    LinkSession session_;
    std::string told_;  // last failure that was logged; only the link's own thread uses it

    std::stop_source cancel_;  // cancels the call if the orderly stop times out
    std::mutex mutex_;
    std::condition_variable_any wake_;
    bool ended_ = false;   // under mutex_: the thread has finished
    std::jthread thread_;  // last: it uses all members above
};

// Only an attached link sends a last report.
GrpcLink::~GrpcLink() {
    thread_.request_stop();
    if (session_.is_attached()) {
        std::unique_lock lock{mutex_};
        wake_.wait_for(lock, farewell_, [this] { return ended_; });
    }
    cancel_.request_stop();
    thread_.join();
}

bool GrpcLink::pause(Duration length, const std::stop_token& stop) {
    std::unique_lock lock{mutex_};
    wake_.wait_for(lock, stop, length, [] { return false; });
    return !stop.stop_requested();
}

void GrpcLink::run(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
        const grpc::Status status = attach(stop);
        const Duration wait = session_.on_end(status.error_code() == grpc::StatusCode::UNAVAILABLE);
        if (stop.stop_requested()) {
            break;
        }
        tell(status);
        pause(wait, stop);
    }
    const std::lock_guard lock{mutex_};
    ended_ = true;
    wake_.notify_all();
}

// Logs a failure; the same one only once, not at every retry.
void GrpcLink::tell(const grpc::Status& status) {
    if (status.error_message() == told_) {
        return;
    }
    told_ = status.error_message();
    log::warning(
        "not attached to the operator; running on the last grants",
        {{"endpoint", settings_.endpoint}, {"reason", told_}});
}

std::shared_ptr<grpc::Channel> GrpcLink::dial(const std::string& ca) const {
    grpc::ChannelArguments arguments;
    // Each attempt dials anew: the Service may route it to another replica, perhaps the leader.
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 20'000);
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10'000);
    arguments.SetMaxReceiveMessageSize(kMessageBytesMax);
    if (!settings_.server_name.empty()) {
        arguments.SetSslTargetNameOverride(settings_.server_name);
    }
    grpc::SslCredentialsOptions tls;
    tls.pem_root_certs = ca;
    return grpc::CreateCustomChannel(settings_.endpoint, grpc::SslCredentials(tls), arguments);
}

grpc::Status GrpcLink::attach(const std::stop_token& stop) {
    const auto ca = read_ca(settings_);
    const auto token = settings_.token_file.empty() ? Result<std::string>{std::string{}}
                                                    : read_filled_file(settings_.token_file);
    if (!ca || !token) {
        const Error& error = !ca ? ca.error() : token.error();
        return {grpc::StatusCode::FAILED_PRECONDITION, error.message};
    }
    const auto channel = dial(*ca);
    const auto stub = wire::Control::NewStub(channel);
    grpc::ClientContext context;
    context.AddMetadata("authorization", "Bearer " + *token);
    const std::stop_callback cancel{cancel_.get_token(), [&context] { context.TryCancel(); }};
    const auto stream = stub->Attach(&context);
    session_.begin();
    if (stream->Write(session_.hello())) {
        std::jthread reader = start_thread(
            "control-read", [this, &stream](const std::stop_token&) { read_grants(*stream); });
        send_reports(*stream, stop);
        if (stop.stop_requested()) {
            stream->WritesDone();  // the operator reads all of it, then ends the call
        } else {
            context.TryCancel();  // cancels the call to wake up the reader
        }
    }
    return stream->Finish();
}

void GrpcLink::read_grants(Stream& stream) {
    wire::OperatorMessage message;
    while (stream.Read(&message)) {
        if (session_.on_message(message, clock_.now())) {
            log::info("attached to the operator", {{"endpoint", settings_.endpoint}});
        }
    }
}

void GrpcLink::send_reports(Stream& stream, const std::stop_token& stop) {
    for (;;) {
        const LinkSession::Outgoing next = session_.next_message(clock_.now());
        if (!stream.Write(next.message)) {
            return;
        }
        if (!pause(next.pause, stop)) {
            // A stop ends the pause early; counts up to that moment are reported, too.
            stream.Write(session_.next_report().message);
            return;
        }
    }
}

}  // namespace

Result<std::unique_ptr<ControlLink>> ControlLink::start(
    const ControlConfig& settings,
    const JobConfig& job,
    std::vector<DatasetConfig> datasets,
    LinkCallbacks callbacks,
    LinkOptions options) {
    STOKER_TRY(const std::string ca, read_ca(settings));
    if (ca.find("BEGIN CERTIFICATE") == std::string::npos) {
        return fail(ErrorCode::kInvalidArgument, "the operator's CA is not a PEM certificate");
    }
    return std::unique_ptr<ControlLink>{
        std::make_unique<GrpcLink>(settings, job, datasets, std::move(callbacks), options)};
}

}  // namespace stoker::sidecar
