#include "tests/support/sidecar_client.h"

#include <chrono>

#include <grpcpp/grpcpp.h>

namespace stoker::testing {

using control::v1::DatasetMount;
using control::v1::DatasetReport;
using control::v1::Hello;
using control::v1::OperatorMessage;
using control::v1::Report;
using control::v1::SidecarMessage;

SidecarClient::SidecarClient(
    const std::string& address, const std::string& ca_pem, const std::string& token) {
    grpc::SslCredentialsOptions options;
    options.pem_root_certs = ca_pem;
    grpc::ChannelArguments arguments;
    // Every client has its own connection, as every pod does.
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    channel_ = grpc::CreateCustomChannel(address, grpc::SslCredentials(options), arguments);
    stub_ = control::v1::Control::NewStub(channel_);
    if (!token.empty()) {
        context_.AddMetadata("authorization", "Bearer " + token);
    }
    context_.set_deadline(std::chrono::system_clock::now() + std::chrono::minutes{1});
    stream_ = stub_->Attach(&context_);
}

SidecarClient::~SidecarClient() {
    if (!finished_) {
        cancel();
        finish();
    }
}

bool SidecarClient::send(const SidecarMessage& message) {
    return stream_->Write(message);
}

bool SidecarClient::hello(const Hello& hello) {
    SidecarMessage message;
    *message.mutable_hello() = hello;
    return send(message);
}

bool SidecarClient::report(const Report& report) {
    SidecarMessage message;
    *message.mutable_report() = report;
    return send(message);
}

bool SidecarClient::receive(OperatorMessage& message) {
    return stream_->Read(&message);
}

grpc::Status SidecarClient::finish() {
    finished_ = true;
    stream_->WritesDone();
    OperatorMessage message;
    while (stream_->Read(&message)) {
    }
    return stream_->Finish();
}

void SidecarClient::cancel() {
    context_.TryCancel();
}

Hello make_hello(const std::string& ns, const std::string& pod) {
    Hello hello;
    hello.set_namespace_(ns);
    hello.set_pod(pod);
    hello.set_node("node-1");
    hello.set_training_job("mnist");
    hello.set_training_job_uid("j1");
    hello.set_version("test");
    DatasetMount* mount = hello.add_datasets();
    mount->set_name("train");
    mount->set_dataset_uid("d1");
    return hello;
}

Report make_report(std::uint64_t sequence, std::uint64_t resident_bytes) {
    Report report;
    report.set_sequence(sequence);
    DatasetReport* dataset = report.add_datasets();
    dataset->set_name("train");
    dataset->set_dataset_uid("d1");
    dataset->set_leader(true);
    dataset->set_manifest_state(control::v1::MANIFEST_STATE_READY);
    dataset->set_revision("0123456789abcdef");
    dataset->set_samples(100);
    dataset->set_total_bytes(100'000);
    dataset->set_resident_bytes(resident_bytes);
    dataset->set_admitting(true);
    return report;
}

}  // namespace stoker::testing
