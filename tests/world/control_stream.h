#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>

#include "operator/sidecars/attach_session.h"
#include "proto/control/v1/control.pb.h"
#include "tests/world/schedule.h"

namespace stoker::world {

// The sidecar's end of a ControlStream.
class StreamUser {
public:
    virtual ~StreamUser() = default;

    virtual void on_orders(const control::v1::OperatorMessage& message) = 0;
    virtual void on_stream_end() = 0;
};

// One control stream in memory, in place of gRPC. Each direction keeps its order; messages are
// delayed. A cut loses the messages in flight, and each end learns of it at its own time. Not
// thread-safe.
class ControlStream final : public control::SidecarStream,
                            public std::enable_shared_from_this<ControlStream> {
public:
    explicit ControlStream(Schedule& schedule)
        : schedule_(schedule) {}

    // Connects the ends; neither is owned.
    void connect(std::weak_ptr<control::AttachSession> session, StreamUser& user);

    // The sidecar's end. False: the flow control holds messages back; send later.
    [[nodiscard]] bool can_send() const;
    void send(const control::v1::SidecarMessage& message);
    // Half-closes the stream, after the last message of an ending process. It reads nothing more.
    void end_sending();

    // The operator's end.
    void read() override;
    void write(const control::v1::OperatorMessage& message) override;
    void close(const Status& why) override;

    // The sidecar's process ends; the operator learns of it after `notice`.
    void drop_sidecar(Duration notice);
    // The operator's process ends; the sidecar learns of it after `notice`.
    void drop_operator(Duration notice);
    // The connection is lost: messages in flight too.
    void cut(Duration operator_notice, Duration sidecar_notice);
    // No message arrives before `until`.
    void stall(TimePoint until);
    // The operator receives bytes that are not a message.
    void garble();

    // The orders in flight to the sidecar, for the oracle.
    [[nodiscard]] const std::deque<control::v1::OperatorMessage>& orders_in_flight() const {
        return down_;
    }

    [[nodiscard]] const StreamUser* user() const { return user_; }

    // Whether the operator's session has learned that the stream ended.
    [[nodiscard]] bool is_over() const { return session_.expired(); }

private:
    // The result of one read by the operator: a message, bytes that are not a message, or the
    // half-close.
    struct Upward {
        std::optional<control::v1::SidecarMessage> message;
        bool is_end = false;
    };

    void in(Duration delay, void (ControlStream::*step)());
    void send_up(Upward it);
    TimePoint arrival(TimePoint& last);
    void arrive_up();
    void arrive_down();
    void written();
    void deliver();
    void end_operator();
    void end_sidecar();

    Schedule& schedule_;
    std::weak_ptr<control::AttachSession> session_;
    StreamUser* user_ = nullptr;
    std::deque<Upward> up_;                          // in flight, oldest first
    std::deque<Upward> unread_;                      // arrived at the operator
    std::deque<control::v1::OperatorMessage> down_;  // in flight
    std::uint64_t reads_ = 1;                        // reads that the operator has requested
    bool is_writing_ = false;
    bool is_lost_ = false;     // nothing arrives any more
    bool has_closed_ = false;  // the operator has ended it
    TimePoint last_up_{};
    TimePoint last_down_{};
    TimePoint stalled_until_{};
};

}  // namespace stoker::world
