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
    std::size_t reports_per_step;  // more wait, and HTTP/2 flow control holds the sender back
    std::size_t message_bytes_max;
};

// One Attach call: token, hello, then reports in and orders out, until somebody ends it. Orders
// wait in `pending_` while a write is under way, at most one grant a dataset.
//
// The registry calls send() with its own lock held; see CheckedCall for the thread rule.
class AttachSession final : public CheckedCall {
public:
    AttachSession(const SessionContext& context, grpc::CallbackServerContext& call)
        : CheckedCall(context, call),
          session_(&context),
          budget_(context.reports_per_step),
          began_(context.clock.now()) {}

    // Ends a session that has not said hello in time; lets a flooding one go on reading.
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
    std::optional<SessionId> attached_;  // only touched by reads and OnDone, which never overlap
    bool refusal_logged_ = false;        // as attached_

    // Guarded by `mutex_`.
    Orders pending_;
    bool greeted_ = false;
    bool answered_ = false;
    bool throttled_ = false;  // no read is under way: the budget is spent
    std::size_t budget_;
    TimePoint began_;
};

}  // namespace stoker::control
