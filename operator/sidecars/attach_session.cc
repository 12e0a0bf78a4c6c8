#include "operator/sidecars/attach_session.h"

#include <utility>

#include <fmt/format.h>

#include "common/log/log.h"
#include "wire/control/codec/control_codec.h"

namespace stoker::control {

namespace {

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

void AttachSession::begin(PodIdentity identity, std::weak_ptr<AttachSession> self) {
    identity_ = std::move(identity);
    self_ = std::move(self);
}

void AttachSession::on_message(const std::optional<v1::SidecarMessage>& message) {
    const Status taken = take_message(message);
    if (!taken) {
        stream_->close(taken);
        return;
    }
    read_more();
}

Status AttachSession::take_message(const std::optional<v1::SidecarMessage>& message) {
    if (message && message->has_hello() && !attached_) {
        return take_hello(message->hello());
    }
    if (message && message->has_report() && attached_) {
        take_report(message->report());
        return {};
    }
    if (message && message->has_peer_request() && attached_) {
        take_peer_request(message->peer_request());
        return {};
    }
    return fail(
        ErrorCode::kInvalidArgument,
        "protocol error: expected one Hello, then Reports and PeerRequests");
}

SidecarLink AttachSession::link() const {
    SidecarLink link;
    link.send = [weak = self_](const Orders& orders) {
        if (const auto session = weak.lock()) {
            session->send(orders);
        }
    };
    link.close = [weak = self_] {
        if (const auto session = weak.lock()) {
            session->stream_->close(
                fail(ErrorCode::kConflict, "another stream has replaced this one for the pod"));
        }
    };
    return link;
}

Status AttachSession::take_hello(const v1::Hello& message) {
    const Hello hello = decode(message);
    STOKER_TRY_VOID(check_identity(identity_, hello));
    STOKER_TRY(attached_, settings_->registry.attach(hello, link(), moment()));
    log::info(
        "sidecar attached",
        {{"namespace", hello.namespace_name},
         {"pod", hello.pod},
         {"node", hello.node},
         {"trainingJob", hello.training_job},
         {"version", hello.version}});
    const std::lock_guard lock(mutex_);
    greeted_ = true;
    if (!answered_) {
        start_write_locked();  // no grant yet; confirms the hello
    }
    return {};
}

void AttachSession::take_report(const v1::Report& message) {
    const Status taken = settings_->registry.report(*attached_, decode(message), moment());
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

// A refused request does not end the stream: the sidecar asks again later.
void AttachSession::take_peer_request(const v1::PeerRequest& message) {
    const Status taken =
        settings_->registry.request_peer_certificate(*attached_, decode(message), moment());
    if (!taken) {
        log::debug(
            "peer request refused",
            {{"namespace", identity_.namespace_name},
             {"pod", identity_.pod},
             {"error", taken.error().message}});
    }
}

void AttachSession::read_more() {
    const std::lock_guard lock(mutex_);
    if (budget_ == 0) {
        throttled_ = true;
        return;
    }
    --budget_;
    stream_->read();
}

void AttachSession::step(TimePoint now) {
    const std::lock_guard lock(mutex_);
    if (!greeted_ && now - began_ > settings_->hello_timeout) {
        stream_->close(fail(ErrorCode::kDeadlineExceeded, "no hello"));
        return;
    }
    budget_ = settings_->reports_per_step;
    if (throttled_) {
        throttled_ = false;
        --budget_;
        stream_->read();
    }
}

void AttachSession::send(const Orders& orders) {
    const std::lock_guard lock(mutex_);
    for (const Grant& grant : orders.grants) {
        std::erase_if(
            pending_.grants, [&](const Grant& it) { return it.dataset_uid == grant.dataset_uid; });
        pending_.grants.push_back(grant);
    }
    pending_.probe = orders.probe ? orders.probe : pending_.probe;
    if (!orders.pins.empty()) {
        pending_.pins = orders.pins;
    }
    for (const PeerGroup& group : orders.peers) {
        std::erase_if(pending_.peers, [&](const PeerGroup& it) {
            return it.dataset_uid == group.dataset_uid;
        });
        pending_.peers.push_back(group);
    }
    if (orders.peer_certificate) {
        pending_.peer_certificate = orders.peer_certificate;
    }
    if (!writing_) {
        start_write_locked();
    }
}

void AttachSession::start_write_locked() {
    writing_ = true;
    pending_.signs_peers = !answered_ && settings_->signs_peers;
    answered_ = true;
    stream_->write(encode(std::exchange(pending_, {})));
}

void AttachSession::on_written() {
    const std::lock_guard lock(mutex_);
    writing_ = false;
    if (pending_ != Orders{}) {
        start_write_locked();
    }
}

void AttachSession::on_gone() {
    if (attached_) {
        settings_->registry.detach(*attached_, moment());
        log::info(
            "sidecar detached", {{"namespace", identity_.namespace_name}, {"pod", identity_.pod}});
    }
}

Moment AttachSession::moment() const {
    return {settings_->clock.now(), settings_->clock.wall_now()};
}

}  // namespace stoker::control
