#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>

#include "common/base/clock.h"
#include "common/base/result.h"
#include "operator/sidecars/authenticator.h"
#include "operator/sidecars/sidecar_registry.h"
#include "proto/control/v1/control.pb.h"

// Private to operator/sidecars: the operator's end of one sidecar's stream.
namespace stoker::control {

// The stream itself: gRPC's (attach_call.h), or one in memory in tests. A call starts an operation
// and returns at once; its result comes through the session's functions, never during the call.
// After the stream has ended, calls do nothing. Thread-safe.
class SidecarStream {
public:
    virtual ~SidecarStream() = default;

    // Asks for one more message: on_message() or on_half_close() follows.
    virtual void read() = 0;
    // Sends; on_written() follows. One write at a time.
    virtual void write(const v1::OperatorMessage& message) = 0;
    // Ends the stream with this status, after a write in progress; on_gone() follows.
    virtual void close(const Status& why) = 0;
};

struct SessionSettings {
    SidecarRegistry& registry;
    const Clock& clock;
    Duration hello_timeout;        // from the call to the hello
    std::size_t reports_per_step;  // further reports wait, so flow control slows the sender
    bool signs_peers = false;      // peer requests are answered
};

// One Attach call: hello, then reports in and orders out, until either side ends it. During a
// write, orders wait in `pending_`, at most one grant per dataset.
//
// Thread rule: the stream's callbacks, send() and step() come on any thread; on_message(),
// on_half_close() and on_gone() never overlap. The registry calls send() with its own lock held.
// `mutex_` is held during calls of the stream, never during a call of the registry.
class AttachSession {
public:
    // `settings` and `stream` must outlive it.
    AttachSession(const SessionSettings& settings, SidecarStream& stream)
        : settings_(&settings),
          stream_(&stream),
          began_(settings.clock.now()),
          budget_(settings.reports_per_step) {}

    AttachSession(const AttachSession&) = delete;
    AttachSession& operator=(const AttachSession&) = delete;

    // Call it once the token is verified; the stream then reads the first message by itself.
    // `self`: this object, for the registry's link.
    void begin(PodIdentity identity, std::weak_ptr<AttachSession> self);

    // nullopt: the bytes could not be parsed as a message.
    void on_message(const std::optional<v1::SidecarMessage>& message);

    // The sidecar will send no more messages.
    void on_half_close() { stream_->close({}); }

    void on_written();
    // The stream is over: the last call.
    void on_gone();

    // Ends a session that sent no hello in time; resumes reading from a throttled one.
    void step(TimePoint now);

    void send(const Orders& orders);

private:
    Status take_message(const std::optional<v1::SidecarMessage>& message);
    Status take_hello(const v1::Hello& message);
    void take_report(const v1::Report& message);
    void take_peer_request(const v1::PeerRequest& message);
    void read_more();
    void start_write_locked();
    [[nodiscard]] SidecarLink link() const;
    [[nodiscard]] Moment moment() const;

    const SessionSettings* settings_;
    SidecarStream* stream_;
    const TimePoint began_;
    PodIdentity identity_;               // set before the first message
    std::weak_ptr<AttachSession> self_;  // as identity_
    std::optional<SessionId> attached_;  // only used by functions that never overlap
    bool refusal_logged_ = false;        // as attached_

    std::mutex mutex_;  // guards the members below
    Orders pending_;
    bool greeted_ = false;
    bool answered_ = false;
    bool writing_ = false;
    bool throttled_ = false;  // no read is in progress: the budget is spent
    std::size_t budget_;
};

}  // namespace stoker::control
