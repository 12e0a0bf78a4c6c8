#include "operator/agents/node_service.h"

#include <utility>

#include <fmt/format.h>

#include "common/log/log.h"
#include "operator/agents/node_codec.h"
#include "operator/agents/wire.h"
#include "proto/node/v1/node.pb.h"

namespace stoker::control {

void NodeReportCall::begin(
    std::function<void()> on_end, const std::optional<grpc::Status>& refusal) {
    self_ = shared_from_this();
    on_end_ = std::move(on_end);
    if (refusal) {
        finish(*refusal);
        return;
    }
    Result<std::string> token = bearer_token(*call_);
    if (!token) {
        finish({grpc::StatusCode::UNAUTHENTICATED, token.error().message});
        return;
    }
    context_->authenticator.authenticate(
        *std::move(token), [weak = weak_from_this()](const Result<PodIdentity>& identity) {
            if (const auto call = weak.lock()) {
                call->on_authenticated(identity);
            }
        });
}

void NodeReportCall::on_authenticated(const Result<PodIdentity>& identity) {
    if (!identity) {
        finish(refuse_token(identity.error()));
        return;
    }
    if (const Status ours = check_node_program(*identity, context_->programs.account); !ours) {
        context_->programs.registry.count_refused();
        finish(to_grpc(ours.error()));
        return;
    }
    const std::lock_guard lock(mutex_);
    if (!ended_) {
        context_->admit(call_->peer());
        identity_ = *identity;
        StartRead(&in_);
    }
}

void NodeReportCall::OnReadDone(bool ok) {
    if (!ok) {
        finish({grpc::StatusCode::CANCELLED, "no message"});
        return;
    }
    Result<grpc::ByteBuffer> orders = answer();
    if (!orders) {
        log::warning(
            "report of a node refused",
            {{"pod", identity_.pod}, {"error", orders.error().message}});
        finish(to_grpc(orders.error()));
        return;
    }
    const std::lock_guard lock(mutex_);
    if (!std::exchange(ended_, true)) {
        out_ = *std::move(orders);
        StartWriteAndFinish(&out_, {}, grpc::Status::OK);
    }
}

Result<grpc::ByteBuffer> NodeReportCall::answer() {
    const auto message = parse_wire<node::v1::NodeReport>(in_);
    if (!message) {
        return fail(ErrorCode::kInvalidArgument, "the message is no NodeReport");
    }
    const NodePrograms& programs = context_->programs;
    NodeReport report = decode(*message);
    const std::string pod_node = identity_.node.empty() ? programs.node_of_pod(identity_.pod) : "";
    if (const Status own = check_node(identity_, pod_node, report.node); !own) {
        programs.registry.count_refused();
        return fail(own.error());
    }
    report.received_at = context_->clock.now();
    report.received_wall = context_->clock.wall_now();
    STOKER_TRY(const NodeOrders orders, programs.registry.report(std::move(report)));
    return to_wire(encode(orders));
}

void NodeReportCall::OnCancel() {
    finish({grpc::StatusCode::CANCELLED, "the node program went away"});
}

void NodeReportCall::finish(const grpc::Status& status) {
    const std::lock_guard lock(mutex_);
    if (!std::exchange(ended_, true)) {
        Finish(status);
    }
}

void NodeReportCall::OnDone() {
    on_end_();
    const auto last = std::move(self_);
}

grpc::ServerGenericBidiReactor* NodeService::CreateReactor(
    grpc::GenericCallbackServerContext* call) {
    auto made = std::make_shared<NodeReportCall>(context_, *call);
    NodeReportCall* raw = made.get();
    std::optional<grpc::Status> refusal;
    std::uint64_t id = 0;
    {
        const std::lock_guard lock(mutex_);
        refusal = refusal_of(call->method());
        id = next_id_++;
        calls_[id] = made;
    }
    made->begin(
        [this, id] {
            const std::lock_guard lock(mutex_);
            calls_.erase(id);
        },
        refusal);
    return raw;
}

std::optional<grpc::Status> NodeService::refusal_of(const std::string& method) const {
    if (method != kNodeReportMethod) {
        return grpc::Status{
            grpc::StatusCode::UNIMPLEMENTED, fmt::format("no method {:.128}", method)};
    }
    if (closing_) {
        return grpc::Status{grpc::StatusCode::UNAVAILABLE, "the operator stops"};
    }
    if (calls_.size() >= call_count_max_) {
        return grpc::Status{grpc::StatusCode::RESOURCE_EXHAUSTED, "too many calls"};
    }
    return std::nullopt;
}

void NodeService::close() {
    std::vector<std::shared_ptr<NodeReportCall>> calls;
    {
        const std::lock_guard lock(mutex_);
        closing_ = true;
        for (const auto& [id, weak] : calls_) {
            if (auto call = weak.lock()) {
                calls.push_back(std::move(call));
            }
        }
    }
    for (const auto& call : calls) {
        call->finish({grpc::StatusCode::UNAVAILABLE, "the operator stops"});
    }
}

}  // namespace stoker::control
