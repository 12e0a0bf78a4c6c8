#include "operator/agents/attach_session.h"

#include <utility>

#include <fmt/format.h>

#include "common/log/log.h"
#include "operator/agents/wire.h"
#include "wire/control/codec/control_codec.h"

namespace stoker::control {

namespace {

// A client that does not read may hold its end up for so long.
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

void AttachSession::begin(std::function<void()> on_end, bool refused) {
    self_ = shared_from_this();
    on_end_ = std::move(on_end);
    began_ = context_->clock.now();
    budget_ = context_->reports_per_step;
    if (refused) {
        finish({grpc::StatusCode::RESOURCE_EXHAUSTED, "too many sidecars"});
        return;
    }
    Result<std::string> token = bearer_token(*call_);
    if (!token) {
        finish({grpc::StatusCode::UNAUTHENTICATED, token.error().message});
        return;
    }
    context_->authenticator.authenticate(
        *std::move(token), [weak = weak_from_this()](Result<PodIdentity> identity) {
            if (const auto session = weak.lock()) {
                session->on_authenticated(std::move(identity));
            }
        });
}

void AttachSession::on_authenticated(Result<PodIdentity> identity) {
    const std::lock_guard lock(mutex_);
    if (end_) {
        return;
    }
    if (!identity) {
        finish_locked(refuse_token(identity.error()));
        return;
    }
    identity_ = *std::move(identity);
    context_->admit(call_->peer());
    StartRead(&in_);
}

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
    if (in_.Length() > context_->message_bytes_max) {
        return fail(ErrorCode::kResourceExhausted, "the message is too long");
    }
    const std::optional<v1::SidecarMessage> message = parse_wire<v1::SidecarMessage>(in_);
    if (message && message->has_hello() && !attached_) {
        return take_hello(message->hello());
    }
    if (message && message->has_report() && attached_) {
        take_report(message->report());
        return {};
    }
    return fail(ErrorCode::kInvalidArgument, "protocol error: expected one Hello, then Reports");
}

Status AttachSession::take_hello(const v1::Hello& message) {
    const Hello hello = decode(message);
    STOKER_TRY_VOID(check_identity(identity_, hello));
    AgentLink link;
    link.send = [weak = weak_from_this()](const std::vector<Grant>& grants) {
        if (const auto session = weak.lock()) {
            session->send(grants);
        }
    };
    link.probe = [weak = weak_from_this()](const Probe& probe) {
        if (const auto session = weak.lock()) {
            session->ask(probe);
        }
    };
    link.close = [weak = weak_from_this()] {
        if (const auto session = weak.lock()) {
            session->finish({grpc::StatusCode::ABORTED, "another stream speaks for this pod"});
        }
    };
    link.pin = [weak = weak_from_this()](const std::vector<RevisionPin>& pins) {
        if (const auto session = weak.lock()) {
            session->pin(pins);
        }
    };
    STOKER_TRY(attached_, context_->registry.attach(hello, std::move(link), moment()));
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
        start_write_locked();  // no grant yet; so it knows that it is heard
    }
    return {};
}

void AttachSession::take_report(const v1::Report& message) {
    const Status taken = context_->registry.report(*attached_, decode(message), moment());
    // Refused reports are counted by the registry; the first one of a stream is worth a line.
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
    if (!greeted_ && now - began_ > context_->hello_timeout) {
        finish_locked({grpc::StatusCode::DEADLINE_EXCEEDED, "no hello"});
        return;
    }
    budget_ = context_->reports_per_step;
    if (throttled_) {
        throttled_ = false;
        --budget_;
        StartRead(&in_);
    }
}

void AttachSession::send(const std::vector<Grant>& grants) {
    const std::lock_guard lock(mutex_);
    if (end_) {
        return;
    }
    for (const Grant& grant : grants) {
        pending_[grant.dataset_uid] = grant;
    }
    if (!writing_) {
        start_write_locked();
    }
}

void AttachSession::ask(const Probe& probe) {
    const std::lock_guard lock(mutex_);
    if (end_) {
        return;
    }
    pending_probe_ = probe;
    if (!writing_) {
        start_write_locked();
    }
}

void AttachSession::pin(const std::vector<RevisionPin>& pins) {
    const std::lock_guard lock(mutex_);
    if (end_) {
        return;
    }
    pending_pins_ = pins;
    if (!writing_) {
        start_write_locked();
    }
}

void AttachSession::start_write_locked() {
    Orders orders;
    for (auto& [uid, grant] : std::exchange(pending_, {})) {
        orders.grants.push_back(std::move(grant));
    }
    orders.probe = std::exchange(pending_probe_, std::nullopt);
    orders.pins = std::exchange(pending_pins_, {});
    out_ = to_wire(encode(orders));
    writing_ = true;
    answered_ = true;
    StartWrite(&out_);
}

void AttachSession::OnWriteDone(bool ok) {
    const std::lock_guard lock(mutex_);
    writing_ = false;
    if (end_) {
        Finish(*end_);
    } else if (ok && (!pending_.empty() || pending_probe_ || !pending_pins_.empty())) {
        start_write_locked();
    }
    // A failed write means that the call is gone; OnCancel says so.
}

void AttachSession::OnCancel() {
    finish({grpc::StatusCode::CANCELLED, "the sidecar went away"});
}

void AttachSession::finish(grpc::Status status) {
    const std::lock_guard lock(mutex_);
    finish_locked(std::move(status));
}

void AttachSession::finish_locked(grpc::Status status) {
    if (end_) {
        return;
    }
    end_ = std::move(status);
    if (writing_) {
        end_asked_ = context_->clock.now();
        return;
    }
    Finish(*end_);
}

void AttachSession::OnDone() {
    if (attached_) {
        context_->registry.detach(*attached_, moment());
        log::info(
            "sidecar detached", {{"namespace", identity_.namespace_name}, {"pod", identity_.pod}});
    }
    {
        // step() may still hold us, but `call_` goes now.
        const std::lock_guard lock(mutex_);
        end_asked_.reset();
    }
    on_end_();
    const auto last = std::move(self_);
}

Moment AttachSession::moment() const {
    return {context_->clock.now(), context_->clock.wall_now()};
}

}  // namespace stoker::control
