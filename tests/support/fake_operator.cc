#include "tests/support/fake_operator.h"

#include <algorithm>
#include <utility>

#include <grpcpp/grpcpp.h>

#include "common/base/check.h"

namespace stoker::testing {

FakeOperator::FakeOperator() {
    grpc::SslServerCredentialsOptions tls;
    tls.pem_key_cert_pairs.push_back({certificates_.key, certificates_.certificate});
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::SslServerCredentials(tls), &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
    STOKER_CHECK(server_ != nullptr, "the fake operator cannot listen");
}

FakeOperator::~FakeOperator() {
    server_->Shutdown(std::chrono::system_clock::now());
}

std::string FakeOperator::endpoint() const {
    return "localhost:" + std::to_string(port_);
}

void FakeOperator::tell(const control::v1::OperatorMessage& message) {
    const std::scoped_lock lock{mutex_};
    told_ = message;
    for (Stream* stream : streams_) {
        stream->Write(told_);
    }
}

void FakeOperator::grant(
    const std::string& dataset_uid,
    std::uint64_t resident_bytes,
    std::uint64_t origin_bytes_per_second) {
    control::v1::OperatorMessage message;
    control::v1::Grant& grant = *message.add_grants();
    grant.set_dataset_uid(dataset_uid);
    grant.set_resident_bytes(resident_bytes);
    grant.set_valid_seconds(600);
    grant.set_origin_bytes_per_second(origin_bytes_per_second);
    grant.set_reason("Granted");
    tell(message);
}

void FakeOperator::on_message(std::function<void(const control::v1::SidecarMessage&)> listener) {
    const std::scoped_lock lock{mutex_};
    listener_ = std::move(listener);
}

namespace {

bool leads(const control::v1::Report& report) {
    return std::ranges::any_of(
        report.datasets(), [](const auto& dataset) { return dataset.leader(); });
}

}  // namespace

grpc::Status FakeOperator::Attach(grpc::ServerContext* /*context*/, Stream* stream) {
    control::v1::SidecarMessage message;
    bool did_lead = false;
    while (stream->Read(&message)) {
        const std::scoped_lock lock{mutex_};
        if (message.has_hello()) {
            streams_.insert(stream);
            stream->Write(told_);
        }
        if (message.has_report()) {
            const bool does_lead = leads(message.report());
            if (does_lead && !std::exchange(did_lead, does_lead)) {
                stream->Write(told_);
            }
            did_lead = does_lead;
        }
        heard_.push_back(message);
        if (listener_) {
            listener_(message);
        }
        changed_.notify_all();
    }
    const std::scoped_lock lock{mutex_};
    streams_.erase(stream);
    return grpc::Status::OK;
}

}  // namespace stoker::testing
