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

void FakeOperator::gather_peers(std::size_t nodes) {
    const std::scoped_lock lock{mutex_};
    peers_.emplace(nodes);
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

void FakeOperator::send_orders(Stream& stream) const {
    stream.Write(told_);
    if (peers_) {
        stream.Write(peers_->orders());
    }
}

void FakeOperator::answer(Caller& caller, const control::v1::SidecarMessage& message) {
    if (message.has_hello()) {
        caller.hello = message.hello();
        control::v1::OperatorMessage first;
        first.set_signs_peers(peers_.has_value());
        caller.stream.Write(first);
        streams_.insert(&caller.stream);
        send_orders(caller.stream);
    }
    if (message.has_peer_request() && peers_) {
        control::v1::OperatorMessage reply;
        *reply.mutable_peer_certificate() = peers_->sign(caller.hello, message.peer_request());
        caller.stream.Write(reply);
    }
    if (message.has_report()) {
        answer_report(caller, message.report());
    }
}

void FakeOperator::answer_report(Caller& caller, const control::v1::Report& report) {
    const bool begins_to_lead = leads(report) && !caller.leads;
    caller.leads = leads(report);
    if (begins_to_lead) {
        send_orders(caller.stream);
    }
    if (peers_ && peers_->hear(caller.hello.node(), report)) {
        send_groups();
    }
}

void FakeOperator::send_groups() {
    for (Stream* stream : streams_) {
        stream->Write(peers_->orders());
    }
}

grpc::Status FakeOperator::Attach(grpc::ServerContext* /*context*/, Stream* stream) {
    control::v1::SidecarMessage message;
    Caller caller{*stream};
    while (stream->Read(&message)) {
        const std::scoped_lock lock{mutex_};
        answer(caller, message);
        heard_.push_back(message);
        if (listener_) {
            listener_(message);
        }
        changed_.notify_all();
    }
    const std::scoped_lock lock{mutex_};
    streams_.erase(stream);
    if (peers_ && peers_->forget(caller.hello.node())) {
        send_groups();
    }
    return grpc::Status::OK;
}

}  // namespace stoker::testing
