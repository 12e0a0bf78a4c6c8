#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "operator/agents/agent_registry.h"
#include "operator/agents/authenticator.h"
#include "proto/control/v1/control.grpc.pb.h"

// Private to operator/agents: the gRPC side of one attached sidecar.
namespace stoker::control {

// What every session needs; outlives them all.
struct SessionContext {
    AgentRegistry& registry;
    Authenticator& authenticator;
    const Clock& clock;
    Duration hello_timeout;
    std::size_t reports_per_step;  // more wait, and HTTP/2 flow control holds the sender back
    std::size_t message_bytes_max;
    // Whoever calls from there has shown a good token.
    std::function<void(const std::string& peer)> admit;
};

// One Attach call: token, hello, then reports in and grants out, until somebody ends it. It owns
// itself from begin() until gRPC is done with it. Never blocks: grants wait in `pending_`, one a
// dataset, while a write is under way.
//
// Thread rule: gRPC's callbacks, the registry's link and step() come on any thread. `mutex_` is
// never held while the registry or the authenticator is called, since the registry calls send()
// with its own lock held.
class AttachSession final : public grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>,
                            public std::enable_shared_from_this<AttachSession> {
public:
    AttachSession(SessionContext& context, grpc::CallbackServerContext& call)
        : context_(&context),
          call_(&call) {}

    // Called once, before gRPC gets the session. `refused`: it ends with RESOURCE_EXHAUSTED at
    // once.
    void begin(std::function<void()> on_end, bool refused);

    // Ends a session that has not said hello in time; lets a flooding one go on reading.
    void step(TimePoint now);

    void send(const std::vector<Grant>& grants);
    void ask(const Probe& probe);
    void pin(const std::vector<RevisionPin>& pins);

    // The first status counts.
    void finish(grpc::Status status);

    void OnReadDone(bool ok) override;
    void OnWriteDone(bool ok) override;
    void OnCancel() override;
    void OnDone() override;

private:
    void on_authenticated(Result<PodIdentity> identity);
    Status take_message();
    Status take_hello(const v1::Hello& message);
    void take_report(const v1::Report& message);
    void read_more();
    void start_write_locked();
    void finish_locked(grpc::Status status);
    [[nodiscard]] Moment moment() const;

    SessionContext* context_;
    grpc::CallbackServerContext* call_;
    std::shared_ptr<AttachSession> self_;
    std::function<void()> on_end_;
    grpc::ByteBuffer in_;                // gRPC's while a read is under way
    grpc::ByteBuffer out_;               // gRPC's while a write is under way
    PodIdentity identity_;               // set before the first read
    std::optional<SessionId> attached_;  // only touched by reads and OnDone, which never overlap
    bool refusal_logged_ = false;        // as attached_

    std::mutex mutex_;
    std::map<std::string, Grant> pending_;  // by dataset uid
    std::optional<Probe> pending_probe_;
    std::vector<RevisionPin> pending_pins_;  // the last ones
    std::optional<grpc::Status> end_;
    bool writing_ = false;
    bool greeted_ = false;
    bool answered_ = false;
    bool throttled_ = false;  // no read is under way: the budget is spent
    std::size_t budget_ = 0;
    TimePoint began_{};
    std::optional<TimePoint> end_asked_;  // when the end had to wait for a write
};

}  // namespace stoker::control
