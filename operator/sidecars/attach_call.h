#pragma once

#include <cstddef>

#include "operator/sidecars/attach_session.h"
#include "operator/sidecars/checked_call.h"

// Private to operator/sidecars: the gRPC side of one attached sidecar.
namespace stoker::control {

struct AttachContext : CallContext {
    SessionSettings session;
    std::size_t message_bytes_max;
};

// One Attach call of gRPC: checks the token, then carries AttachSession's messages. The session may
// hold its lock when it calls us; we never hold `mutex_` when we call the session.
class AttachCall final : public CheckedCall, private SidecarStream {
public:
    AttachCall(const AttachContext& context, grpc::CallbackServerContext& call)
        : CheckedCall(context, call),
          message_bytes_max_(context.message_bytes_max),
          session_(context.session, *this) {}

    // Cancels a call whose client does not read its end.
    void step(TimePoint now) override;

    void OnReadDone(bool ok) override;
    void OnWriteDone(bool ok) override;
    void OnDone() override;

private:
    Status check_caller(const PodIdentity& identity) override;

    void read() override;
    void write(const v1::OperatorMessage& message) override;
    void close(const Status& why) override;

    const std::size_t message_bytes_max_;
    AttachSession session_;
};

}  // namespace stoker::control
