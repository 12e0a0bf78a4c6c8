#pragma once

#include <cstddef>
#include <utility>

#include <grpcpp/generic/async_generic_service.h>

#include "operator/sidecars/checked_call.h"
#include "operator/sidecars/node_programs.h"

// Private to operator/sidecars: the gRPC side of stoker.node.v1.Nodes.
namespace stoker::control {

inline constexpr const char* kNodeReportMethod = "/stoker.node.v1.Nodes/Report";

struct NodeCallContext : CallContext {
    NodePrograms programs;
};

// One Report call: token, message, answer.
//
// It is served as a stream of one message each way, which a unary call is on the wire: so nothing
// of the message, which can be long, is read before its sender is authenticated.
class NodeReportCall final : public CheckedCall {
public:
    NodeReportCall(const NodeCallContext& context, grpc::CallbackServerContext& call)
        : CheckedCall(context, call),
          programs_(&context.programs) {}

    void OnReadDone(bool ok) override;

private:
    Status check_caller(const PodIdentity& identity) override;
    Result<grpc::ByteBuffer> answer();

    const NodePrograms* programs_;
};

// Thread-safe.
class NodeService final : public grpc::CallbackGenericService {
public:
    NodeService(NodeCallContext context, std::size_t call_count_max)
        : context_(std::move(context)),
          calls_(call_count_max, "too many calls") {}

    grpc::ServerGenericBidiReactor* CreateReactor(
        grpc::GenericCallbackServerContext* call) override;

    // Ends every call with UNAVAILABLE, and all later ones.
    void close() { calls_.close(); }

private:
    const NodeCallContext context_;
    LiveCalls calls_;
};

}  // namespace stoker::control
