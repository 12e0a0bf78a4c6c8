#pragma once

#include <cstddef>
#include <optional>

#include "common/base/clock.h"
#include "operator/sidecars/checked_call.h"
#include "operator/sidecars/sidecar_registry.h"
#include "proto/control/v1/control.grpc.pb.h"

// Private to operator/sidecars: the gRPC side of one attached sidecar.
namespace stoker::control {

struct SessionContext : CallContext {
    SidecarRegistry& registry;
    Duration hello_timeout;
    std::size_t reports_per_step;  // further reports wait, and HTTP/2 flow control slows the sender
    std::size_t message_bytes_max;
};

// One Attach call: token, hello, then reports in and orders out, until either side ends it. During
// a write, orders wait in `pending_`, at most one grant per dataset.
//
// The registry calls send() with its own lock held; see CheckedCall for the thread rule.
class AttachSession final : public CheckedCall {
public:
    AttachSession(const SessionContext& context, grpc::CallbackServerContext& call)
        : CheckedCall(context, call),
          session_(&context),
          budget_(context.reports_per_step),
          began_(context.clock.now()) {}

    // Ends a session that sent no hello in time; resumes reading from a throttled one.
    void step(TimePoint now) override;

    void send(const Orders& orders);

    void OnReadDone(bool ok) override;
    void OnWriteDone(bool ok) override;
    void OnDone() override;

private:
    Status take_message();
    Status take_hello(const v1::Hello& message);
    void take_report(const v1::Report& message);
    void read_more();
    void start_write_locked();
    [[nodiscard]] Moment moment() const;

    const SessionContext* session_;
    std::optional<SessionId> attached_;  // only used by reads and OnDone, which never overlap
    bool refusal_logged_ = false;        // as attached_

    // Guarded by `mutex_`.
    Orders pending_;
    bool greeted_ = false;
    bool answered_ = false;
    bool throttled_ = false;  // no read is in progress: the budget is spent
    std::size_t budget_;
    TimePoint began_;
};

}  // namespace stoker::control
