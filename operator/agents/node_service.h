#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

#include "common/base/clock.h"
#include "operator/agents/authenticator.h"
#include "operator/agents/node_programs.h"

// Private to operator/agents: the gRPC side of stoker.node.v1.Nodes.
namespace stoker::control {

inline constexpr const char* kNodeReportMethod = "/stoker.node.v1.Nodes/Report";

// What every call needs; outlives them all.
struct NodeCallContext {
    NodePrograms programs;
    Authenticator& authenticator;
    const Clock& clock;
    // Whoever calls from there has shown a good token.
    std::function<void(const std::string& peer)> admit;
};

// One Report call: token, message, answer. It owns itself from begin() until gRPC is done with it.
// Never blocks.
//
// On the wire a unary call is a stream of one message each way, and it is served as one: so
// nothing of the message, which can be long, is read before its sender is known.
//
// Thread rule: gRPC's callbacks and the authenticator's come on any thread; `mutex_` is never held
// while the registry or the authenticator is called.
class NodeReportCall final : public grpc::ServerGenericBidiReactor,
                             public std::enable_shared_from_this<NodeReportCall> {
public:
    NodeReportCall(const NodeCallContext& context, grpc::CallbackServerContext& call)
        : context_(&context),
          call_(&call) {}

    // Called once, before gRPC gets the call. `refusal`: it ends with that at once.
    void begin(std::function<void()> on_end, const std::optional<grpc::Status>& refusal);

    // The first status counts.
    void finish(const grpc::Status& status);

    void OnReadDone(bool ok) override;
    void OnCancel() override;
    void OnDone() override;

private:
    void on_authenticated(const Result<PodIdentity>& identity);
    Result<grpc::ByteBuffer> answer();

    const NodeCallContext* context_;
    grpc::CallbackServerContext* call_;
    std::shared_ptr<NodeReportCall> self_;
    std::function<void()> on_end_;
    grpc::ByteBuffer in_;   // gRPC's while the read is under way
    grpc::ByteBuffer out_;  // gRPC's once the answer is on its way
    PodIdentity identity_;  // set before the read

    std::mutex mutex_;
    bool ended_ = false;
};

// Makes the calls and knows them while they live. Thread-safe.
class NodeService final : public grpc::CallbackGenericService {
public:
    NodeService(NodeCallContext context, std::size_t call_count_max)
        : context_(std::move(context)),
          call_count_max_(call_count_max) {}

    grpc::ServerGenericBidiReactor* CreateReactor(
        grpc::GenericCallbackServerContext* call) override;

    // Ends every call with UNAVAILABLE, and those that come later.
    void close();

private:
    std::optional<grpc::Status> refusal_of(const std::string& method) const;

    const NodeCallContext context_;
    std::size_t call_count_max_;
    std::mutex mutex_;
    std::map<std::uint64_t, std::weak_ptr<NodeReportCall>> calls_;
    std::uint64_t next_id_ = 0;
    bool closing_ = false;
};

}  // namespace stoker::control
