#include "operator/sidecars/attach_call.h"

#include <utility>

#include "proto/control/v1/control.grpc.pb.h"

namespace stoker::control {

namespace {

// Longest wait for a client that does not read, before its call is cancelled.
constexpr Duration kEndPatience = std::chrono::seconds{5};

}  // namespace

Status AttachCall::check_caller(const PodIdentity& identity) {
    session_.begin(identity, std::shared_ptr<AttachSession>(shared_from_this(), &session_));
    return {};
}

void AttachCall::OnReadDone(bool ok) {
    if (!ok) {
        session_.on_half_close();
        return;
    }
    if (in_.Length() > message_bytes_max_) {
        close(fail(ErrorCode::kResourceExhausted, "the message is too long"));
        return;
    }
    std::optional<v1::SidecarMessage> message{std::in_place};
    if (!MessageBytes<v1::SidecarMessage>::Deserialize(&in_, &*message).ok()) {
        message.reset();
    }
    session_.on_message(message);
}

void AttachCall::OnWriteDone(bool ok) {
    {
        const std::lock_guard lock(mutex_);
        writing_ = false;
        if (end_) {
            Finish(*end_);
            return;
        }
    }
    // A failed write means that the call is gone; OnCancel reports it.
    if (ok) {
        session_.on_written();
    }
}

void AttachCall::OnDone() {
    session_.on_gone();
    CheckedCall::OnDone();
}

void AttachCall::step(TimePoint now) {
    {
        const std::lock_guard lock(mutex_);
        if (end_) {
            if (end_asked_ && now - *end_asked_ > kEndPatience) {
                call_->TryCancel();
            }
            return;
        }
    }
    session_.step(now);
}

void AttachCall::read() {
    const std::lock_guard lock(mutex_);
    if (!end_) {
        StartRead(&in_);
    }
}

void AttachCall::write(const v1::OperatorMessage& message) {
    const std::lock_guard lock(mutex_);
    if (end_) {
        return;
    }
    bool owned = false;
    out_.Clear();
    MessageBytes<v1::OperatorMessage>::Serialize(message, &out_, &owned);
    writing_ = true;
    StartWrite(&out_);
}

void AttachCall::close(const Status& why) {
    finish(why ? grpc::Status::OK : to_grpc(why.error()));
}

}  // namespace stoker::control
