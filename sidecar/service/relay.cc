#include "sidecar/service/relay.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <variant>

#include <fmt/core.h>

#include "common/domain/ids.h"
#include "sidecar/service/client_memfds.h"

namespace stoker::sidecar {

namespace {

constexpr std::uint64_t kHelloRequestId = 1;

// Request id of the relay's own requests; the client's ids count from 1.
constexpr std::uint64_t kCountRequestId = std::numeric_limits<std::uint64_t>::max();

// Backlog for a slow leader above which the client has to wait.
constexpr std::size_t kUpstreamHigh = std::size_t{4} << 20U;

constexpr const char* kNotKept =
    "a sample cannot be kept on this node now, and this pod has no key of its own to read it at "
    "the origin; give the pod a key, free the node's disk, or raise sidecar.windowBytes, of which "
    "guests get at most three quarters";

// Whether the error may be temporary: another leader, or this one later, may answer differently.
bool may_pass(ErrorCode code) {
    return code == ErrorCode::kUnavailable || code == ErrorCode::kDeadlineExceeded ||
           code == ErrorCode::kResourceExhausted || code == ErrorCode::kForbidden ||
           code == ErrorCode::kInternal || code == ErrorCode::kCancelled;
}

// An answer that sends the client to the origin for all samples of its fetch. An answer with some
// ready samples does not count and is passed on: the client reads those and asks again for the
// others, which may need the room of the first.
const local::Fetched* refused_fetch(const Frame& frame) {
    const auto* fetched = std::get_if<local::Fetched>(&frame.message);
    const auto has = [fetched](local::FetchStatus status) {
        return std::ranges::find(fetched->statuses, status) != fetched->statuses.end();
    };
    const bool refused = fetched != nullptr && has(local::FetchStatus::kReadAtOrigin) &&
                         !has(local::FetchStatus::kReady);
    return refused ? fetched : nullptr;
}

}  // namespace

Relay::Relay(
    EventLoop& loop,
    Session& session,
    std::string client_directory,
    ReadingListener& listener,
    Callbacks callbacks)
    : loop_(loop),
      session_(session),
      client_directory_(std::move(client_directory)),
      listener_(listener),
      callbacks_(std::move(callbacks)),
      ask_timer_(loop) {}

void Relay::connect(LeaderConnection connection) {
    forget_leader();
    stands_in_ = false;
    upstream_ = std::make_unique<FrameSocket>(
        loop_,
        std::move(connection.socket),
        [this](const Frame& frame) { on_answer(frame); },
        [this](const std::string&) {
            forget_leader();
            if (on_parted_) {
                end_parting();
            } else {
                callbacks_.lost();
            }
        });
    upstream_->set_limits({.payload_bytes_max = local::kFramePayloadBytesMax});
    upstream_->on_drained([this] { send_on(); });
    upstream_->send(connection.peer, 0);
    local::Hello hello = session_.hello();
    hello.relay = true;
    upstream_->send(hello, kHelloRequestId);
}

void Relay::stand_in(const Error& why) {
    if (std::exchange(stands_in_, true)) {
        return;
    }
    upstream_.reset();
    forget_leader();
    if (on_parted_) {
        end_parting();
    } else if (!is_welcomed()) {
        session_.refuse(why);
    } else if (log_.has_begun()) {
        session_.hang_up();  // the client draws alone, and reports its draws when it reconnects
    } else {
        for (Frame& frame : log_.take_pending()) {
            answer_alone(std::move(frame));
        }
    }
}

void Relay::answer_alone(Frame frame) {
    const std::uint64_t request_id = frame.request_id;
    if (const auto* fetch = std::get_if<local::Fetch>(&frame.message)) {
        local::Fetched fetched;
        fetched.statuses.assign(fetch->samples.size(), local::FetchStatus::kReadAtOrigin);
        session_.send(fetched, request_id);
    } else if (std::holds_alternative<local::Plan>(frame.message)) {
        log_.on_request(frame);
        log_.on_answer({request_id, local::Planned{}});
        session_.send(local::Planned{}, request_id);
    } else if (std::holds_alternative<local::Consumed>(frame.message)) {
        log_.on_request(frame);
    } else if (request_id != 0) {
        session_.hang_up();  // only a leader can answer this request
    }
}

// Drops the state of a lost connection to the leader.
void Relay::forget_leader() {
    ready_ = false;
    uncounted_ = 0;
    held_.reset();
    replay_.clear();
    patience_.ask_all();
    if (!on_parted_) {
        session_.set_paused(false);
    }
}

void Relay::on_request(Frame frame) {
    if (stands_in_) {
        answer_alone(std::move(frame));
        return;
    }
    if (refuse_request(frame)) {
        return;
    }
    log_.on_request(frame);
    if (!ready_) {
        return;
    }
    if (counts_ && std::holds_alternative<local::Consumed>(frame.message)) {
        ++uncounted_;
        frame.request_id = kCountRequestId;
    }
    // A leader of an older version accepts neither plans that look into the next epoch nor p_others
    // (docs/design/local-protocol.md), but we told the client that it may send both.
    if (const auto* plan = std::get_if<local::Plan>(&frame.message); plan != nullptr && !ahead_) {
        frame.fd = without_ahead(std::move(frame.fd), *plan, log_.sample_count());
    }
    if (auto* losses = std::get_if<local::Losses>(&frame.message); losses != nullptr && !others_) {
        losses->p_others.clear();
    }
    upstream_->send(frame.message, frame.request_id, std::move(frame.fd));
    if (upstream_->backlog_bytes() > kUpstreamHigh) {
        session_.set_paused(true);  // until send_on()
    }
}

// Refuses a request that a leader would refuse, so that it is not replayed.
bool Relay::refuse_request(const Frame& frame) {
    if (log_.is_full()) {
        session_.send_error(
            {ErrorCode::kResourceExhausted, "too many requests are unanswered"}, frame.request_id);
        return true;
    }
    const auto* plan = std::get_if<local::Plan>(&frame.message);
    if (plan == nullptr || log_.sample_count() == 0) {
        return false;
    }
    const auto checked = check_plan(frame.fd, *plan, log_.sample_count());
    if (!checked) {
        session_.send_error(checked.error(), frame.request_id);
    }
    return !checked;
}

void Relay::part(std::function<void()> on_parted) {
    on_parted_ = std::move(on_parted);
    if (uncounted_ == 0) {
        end_parting();
    }
}

void Relay::end_parting() {
    std::exchange(on_parted_, [] {})();
}

void Relay::on_answer(const Frame& frame) {
    if (ready_ && frame.request_id == kCountRequestId) {
        on_counted(frame);
        return;
    }
    if (on_parted_) {
        return;
    }
    if (!ready_) {
        on_welcome(frame.message);
        return;
    }
    const auto* refused = refused_fetch(frame);
    if (refused != nullptr && callbacks_.must_wait()) {
        ask_later(frame, *refused);
        return;
    }
    patience_.forget(frame.request_id);
    const bool repeated = log_.is_repeated(frame.request_id);
    log_.on_answer(frame);
    if (!repeated) {
        if (const auto* drawn = std::get_if<local::Drawn>(&frame.message)) {
            listener_.on_drawn(session_, *drawn);
        }
        session_.send(frame.message, frame.request_id);
    }
}

// Withholds the answer from the client while a retry may help; then sends an error.
void Relay::ask_later(const Frame& frame, local::Fetched refused) {
    if (patience_.wait(frame.request_id, loop_.now())) {
        ask_again_at_due();
        return;
    }
    std::ranges::replace(
        refused.statuses, local::FetchStatus::kReadAtOrigin, local::FetchStatus::kOriginError);
    if (refused.message.empty()) {
        refused.message = kNotKept;
    }
    log_.on_answer(frame);
    session_.send(refused, frame.request_id);
}

void Relay::ask_again_at_due() {
    ask_timer_.cancel();
    if (const auto due = patience_.next_due()) {
        ask_timer_.run_at(*due, [this] { ask_again(); });
    }
}

void Relay::ask_again() {
    for (const std::uint64_t request_id : patience_.take_due(loop_.now())) {
        const local::Message* asked = log_.pending(request_id);
        if (ready_ && !on_parted_ && asked != nullptr) {
            upstream_->send(*asked, request_id);
        }
    }
    ask_again_at_due();
}

// `frame`: a kCounted, or an error if the client reported ids that the dataset does not have.
void Relay::on_counted(const Frame& frame) {
    if (const auto* counted = std::get_if<local::Counted>(&frame.message)) {
        listener_.on_counted(*counted);
    }
    uncounted_ -= uncounted_ > 0 ? 1 : 0;
    if (on_parted_ && uncounted_ == 0) {
        end_parting();
    }
}

void Relay::on_welcome(const local::Message& message) {
    if (const auto* listing = std::get_if<local::Listing>(&message)) {
        if (!is_welcomed()) {
            session_.send_listing(listing->objects_listed);
        }
        return;
    }
    if (const auto* error = std::get_if<local::ErrorReply>(&message)) {
        on_error(*error);
        return;
    }
    const auto* welcome = std::get_if<local::Welcome>(&message);
    if (welcome == nullptr) {
        upstream_->close_when_sent();
        return;
    }
    if (is_welcomed() && *revision_ != welcome->revision) {
        session_.refuse(
            {ErrorCode::kConflict,
             fmt::format(
                 "the node now serves revision {}",
                 domain::to_string(domain::RevisionId{welcome->revision}))});
        return;
    }
    held_ = *welcome;
    if (is_welcomed()) {
        admit();
    } else {
        callbacks_.waiting();
    }
}

void Relay::on_error(const local::ErrorReply& error) {
    const auto code = static_cast<ErrorCode>(error.code);
    if (may_pass(code) && callbacks_.must_wait()) {
        upstream_->close_when_sent();  // connect() makes a new connection
    } else {
        session_.refuse({code, error.message});
    }
}

std::optional<domain::RevisionId> Relay::waits_for() const {
    return held_ ? std::optional{domain::RevisionId{held_->revision}} : std::nullopt;
}

void Relay::admit() {
    local::Welcome welcome = *std::exchange(held_, std::nullopt);
    ready_ = true;
    counts_ = (welcome.features & local::kFeatureCounts) != 0;
    ahead_ = (welcome.features & local::kFeatureAhead) != 0;
    others_ = (welcome.features & local::kFeaturePOthers) != 0;
    log_.set_sample_count(welcome.sample_count);
    if (!is_welcomed()) {
        revision_ = welcome.revision;
        welcome.directory = client_directory_;
        session_.send_welcome(welcome);
    }
    say_again();
}

void Relay::say_again() {
    replay_ = log_.replay(ahead_);
    session_.set_paused(true);  // so that later frames stay behind this one
    send_on();
}

// Sends as much as the leader's socket takes without waiting; continues when that is sent.
void Relay::send_on() {
    if (std::exchange(sending_on_, true)) {
        return;  // the outer call of this function continues
    }
    while (!replay_.empty() && upstream_->backlog_bytes() <= FrameSocket::kBacklogLow) {
        Frame frame = std::move(replay_.front());
        replay_.pop_front();
        upstream_->send(frame.message, frame.request_id, std::move(frame.fd));
    }
    sending_on_ = false;
    if (replay_.empty() && !on_parted_) {
        session_.set_paused(false);
    }
}

}  // namespace stoker::sidecar
