#include "operator/sidecars/attach_session.h"

#include <utility>

#include <fmt/format.h>

#include "common/log/log.h"
#include "wire/control/codec/control_codec.h"

namespace stoker::control {

namespace {

// Longest wait for a client that does not read, before its call is cancelled.
constexpr Duration kEndPatience = std::chrono::seconds{5};

Status check_identity(const PodIdentity& identity, const Hello& hello) {
    if (identity.namespace_name != hello.namespace_name || identity.pod != hello.pod) {
        return fail(
            ErrorCode::kForbidden,
            fmt::format(
                "the token is of pod {}/{}, not of {:.64}/{:.64}",
                identity.namespace_name,
                identity.pod,
                hello.namespace_name,
                hello.pod));
    }
    if (!identity.node.empty() && identity.node != hello.node) {
        return fail(
            ErrorCode::kForbidden,
            fmt::format(
                "pod {}/{} runs on node {}, not on {:.64}",
                identity.namespace_name,
                identity.pod,
                identity.node,
                hello.node));
    }
    return {};
}

}  // namespace

void AttachSession::OnReadDone(bool ok) {
    if (!ok) {
        finish(grpc::Status::OK);
        return;
    }
    const Status taken = take_message();
    if (!taken) {
        finish(to_grpc(taken.error()));
        return;
    }
    read_more();
}

Status AttachSession::take_message() {
    if (in_.Length() > session_->message_bytes_max) {
        return fail(ErrorCode::kResourceExhausted, "the message is too long");
    }
    v1::SidecarMessage message;
    const bool is_message = MessageBytes<v1::SidecarMessage>::Deserialize(&in_, &message).ok();
    if (is_message && message.has_hello() && !attached_) {
        return take_hello(message.hello());
    }
    if (is_message && message.has_report() && attached_) {
        take_report(message.report());
        return {};
    }
    return fail(ErrorCode::kInvalidArgument, "protocol error: expected one Hello, then Reports");
}

Status AttachSession::take_hello(const v1::Hello& message) {
    const Hello hello = decode(message);
    STOKER_TRY_VOID(check_identity(identity_, hello));
    const auto weak = std::weak_ptr(std::static_pointer_cast<AttachSession>(shared_from_this()));
    SidecarLink link;
    link.send = [weak](const Orders& orders) {
        if (const auto session = weak.lock()) {
            session->send(orders);
        }
    };
    link.close = [weak] {
        if (const auto session = weak.lock()) {
            session->finish({grpc::StatusCode::ABORTED, "another stream speaks for this pod"});
        }
    };
    STOKER_TRY(attached_, session_->registry.attach(hello, std::move(link), moment()));
    log::info(
        "sidecar attached",
        {{"namespace", hello.namespace_name},
         {"pod", hello.pod},
         {"node", hello.node},
         {"trainingJob", hello.training_job},
         {"version", hello.version}});
    const std::lock_guard lock(mutex_);
    greeted_ = true;
    if (!answered_ && !end_) {
        start_write_locked();  // no grant yet; confirms the hello
    }
    return {};
}

void AttachSession::take_report(const v1::Report& message) {
    const Status taken = session_->registry.report(*attached_, decode(message), moment());
    // The registry counts refused reports; the first one of a stream is logged.
    if (!taken && taken.error().code == ErrorCode::kInvalidArgument && !refusal_logged_) {
        refusal_logged_ = true;
        log::warning(
            "report refused",
            {{"namespace", identity_.namespace_name},
             {"pod", identity_.pod},
             {"error", taken.error().message}});
    }
}

void AttachSession::read_more() {
    const std::lock_guard lock(mutex_);
    if (end_) {
        return;
    }
    if (budget_ == 0) {
        throttled_ = true;
        return;
    }
    --budget_;
    StartRead(&in_);
}

void AttachSession::step(TimePoint now) {
    const std::lock_guard lock(mutex_);
    if (end_) {
        if (end_asked_ && now - *end_asked_ > kEndPatience) {
            call_->TryCancel();
        }
        return;
    }
    if (!greeted_ && now - began_ > session_->hello_timeout) {
        finish_locked({grpc::StatusCode::DEADLINE_EXCEEDED, "no hello"});
        return;
    }
    budget_ = session_->reports_per_step;
    if (throttled_) {
        throttled_ = false;
        --budget_;
        StartRead(&in_);
    }
}

void AttachSession::send(const Orders& orders) {
    const std::lock_guard lock(mutex_);
    if (end_) {
        return;
    }
    for (const Grant& grant : orders.grants) {
        std::erase_if(
            pending_.grants, [&](const Grant& it) { return it.dataset_uid == grant.dataset_uid; });
        pending_.grants.push_back(grant);
    }
    pending_.probe = orders.probe ? orders.probe : pending_.probe;
    if (!orders.pins.empty()) {
        pending_.pins = orders.pins;
    }
    if (!writing_) {
        start_write_locked();
    }
}

void AttachSession::start_write_locked() {
    bool owned = false;
    out_.Clear();
    MessageBytes<v1::OperatorMessage>::Serialize(
        encode(std::exchange(pending_, {})), &out_, &owned);
    writing_ = true;
    answered_ = true;
    StartWrite(&out_);
}

void AttachSession::OnWriteDone(bool ok) {
    const std::lock_guard lock(mutex_);
    writing_ = false;
    if (end_) {
        Finish(*end_);
    } else if (ok && pending_ != Orders{}) {
        start_write_locked();
    }
    // A failed write means that the call is gone; OnCancel reports it.
}

void AttachSession::OnDone() {
    if (attached_) {
        session_->registry.detach(*attached_, moment());
        log::info(
            "sidecar detached", {{"namespace", identity_.namespace_name}, {"pod", identity_.pod}});
    }
    CheckedCall::OnDone();
}

Moment AttachSession::moment() const {
    return {context_->clock.now(), context_->clock.wall_now()};
}

}  // namespace stoker::control
