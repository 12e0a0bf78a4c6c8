#include "operator/sidecars/node_service.h"

#include <optional>

#include <fmt/format.h>

#include "common/log/log.h"
#include "operator/sidecars/node_codec.h"
#include "proto/node/v1/node.pb.h"

namespace stoker::control {

Status NodeReportCall::check_caller(const PodIdentity& identity) {
    Status ours = check_node_program(identity, programs_->account);
    if (!ours) {
        programs_->registry.count_refused();
    }
    return ours;
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
    if (!end_) {
        end_ = grpc::Status::OK;
        out_ = *std::move(orders);
        StartWriteAndFinish(&out_, {}, *end_);
    }
}

Result<grpc::ByteBuffer> NodeReportCall::answer() {
    node::v1::NodeReport message;
    if (!MessageBytes<node::v1::NodeReport>::Deserialize(&in_, &message).ok()) {
        return fail(ErrorCode::kInvalidArgument, "the message is not a NodeReport");
    }
    NodeReport report = decode(message);
    const std::string pod_node =
        identity_.node.empty() ? programs_->node_of_pod(identity_.pod) : "";
    if (const Status own = check_node(identity_, pod_node, report.node); !own) {
        programs_->registry.count_refused();
        return fail(own.error());
    }
    report.received_at = context_->clock.now();
    report.received_wall = context_->clock.wall_now();
    STOKER_TRY(const NodeOrders orders, programs_->registry.report(std::move(report)));
    grpc::ByteBuffer answer;
    bool owned = false;
    MessageBytes<node::v1::NodeOrders>::Serialize(encode(orders), &answer, &owned);
    return answer;
}

grpc::ServerGenericBidiReactor* NodeService::CreateReactor(
    grpc::GenericCallbackServerContext* call) {
    std::optional<grpc::Status> refusal;
    if (call->method() != kNodeReportMethod) {
        refusal = grpc::Status{
            grpc::StatusCode::UNIMPLEMENTED, fmt::format("no method {:.128}", call->method())};
    }
    return calls_.begin(std::make_shared<NodeReportCall>(context_, *call), refusal);
}

}  // namespace stoker::control
