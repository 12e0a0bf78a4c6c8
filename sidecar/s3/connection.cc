#include "sidecar/s3/connection.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <random>
#include <utility>

#include <fmt/core.h>
#include <sys/sendfile.h>
#include <sys/socket.h>

#include "sidecar/s3/response_text.h"

namespace stoker::s3 {

namespace {

constexpr std::size_t kReceiveBytes = kHeadBytesMax;
// Parts of an object requested ahead while one is sent.
constexpr std::size_t kPartsAhead = 3;
// Parts requested ahead for a guest: fewer, because a guest's part is a copy in memory, not a
// mapping of a segment file.
constexpr std::size_t kCopiesAhead = 1;
constexpr std::size_t kForNobody = SIZE_MAX;  // for requests that no response waits for

bool would_block(int error) {
    return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

std::string next_request_id() {
    static const std::uint64_t kStart = std::random_device{}() | std::uint64_t{1} << 40U;
    static std::atomic<std::uint64_t> count{0};
    return fmt::format("{:016X}", (kStart << 20U) + count.fetch_add(1, std::memory_order_relaxed));
}

}  // namespace

Connection::Connection(ClientSocket socket, std::string buffered, const ConnectionParts& parts)
    : socket_(std::move(socket)),
      parts_(parts),
      in_(std::move(buffered)),
      deadline_(parts.clock.now() + parts.limits.idle) {}

Connection::Next Connection::advance() {
    while (true) {
        switch (state_) {
            case State::kReading:
                if (const Next next = read_request(); state_ == State::kReading) {
                    return next;
                }
                break;
            case State::kWriting:
                if (const Next next = write_some(); state_ != State::kReading || in_.empty()) {
                    return next;  // without reading first: the next request is rarely there yet
                }
                break;
            case State::kFetching:
                return Next::kFetch;
            case State::kForwarding:
                return Next::kForward;
            case State::kLingering:
                return linger();
        }
    }
}

// Begins to serve the next request if its head has arrived. Returns the owner's next step.
Connection::Next Connection::read_request() {
    while (true) {
        ParsedHead parsed = parse_head(in_);
        if (parsed.state == HeadState::kComplete) {
            in_.erase(0, parsed.bytes);
            begin(std::move(parsed.head));
            return Next::kRead;
        }
        if (parsed.state != HeadState::kIncomplete) {
            in_.clear();
            call_ = {};
            keep_alive_ = false;
            request_id_ = next_request_id();
            refuse(
                parsed.state == HeadState::kTooLarge
                    ? S3Error{431, "RequestHeaderSectionTooLarge", "the head exceeds 16 KiB"}
                    : S3Error{400, "BadRequest", "the request's head is malformed"});
            return Next::kRead;
        }
        if (is_ending_ && in_.empty()) {
            return Next::kClose;
        }
        const bool was_idle = in_.empty();
        if (!receive()) {
            return would_block(errno) ? Next::kRead : Next::kClose;
        }
        if (was_idle) {
            deadline_ = parts_.clock.now() + parts_.limits.head;
        }
    }
}

// Reads from the socket. False: nothing was received; errno says why, and is 0 after a hang-up.
bool Connection::receive() {
    std::array<char, kReceiveBytes> bytes;
    const ssize_t got = ::recv(fd(), bytes.data(), bytes.size(), 0);
    if (got > 0) {
        in_.append(bytes.data(), static_cast<std::size_t>(got));
        return true;
    }
    errno = got == 0 ? 0 : errno;
    return false;
}

void Connection::begin(RequestHead head) {
    keep_alive_ = head.keep_alive && !is_ending_;
    head.keep_alive = keep_alive_;
    request_id_ = next_request_id();
    auto call = parse_call(head);
    if (!call) {
        call_ = {};
        call_.head = std::move(head);
        refuse({400, "InvalidURI", "the path or the query is not percent-encoded properly"});
        return;
    }
    call_ = *std::move(call);
    if (auto error = verify_signature(call_, parts_.key, parts_.clock.wall_now())) {
        refuse(*error);
        return;
    }
    serve(route_call(call_, parts_.places));
}

void Connection::serve(Route route) {
    route_ = std::move(route);
    switch (route_.kind) {
        case Route::Kind::kForward:
            if (route_.dataset != nullptr) {
                route_.dataset->count_forwarded();
            }
            state_ = State::kForwarding;
            break;
        case Route::Kind::kList:
            send_text(xml_response(route_.list, request_id_, keep_alive_));
            break;
        case Route::Kind::kObject:
            serve_object();
            break;
        case Route::Kind::kNotYet:
            refuse(slow_down("the sidecar has not listed this packed dataset yet; try again"));
            break;
    }
}

void Connection::serve_object() {
    if (call_.head.method == "HEAD" || route_.answer.length == 0) {
        if (route_.answer.status == 416) {
            refuse({416, "InvalidRange", "the range begins after the object's end"});
        } else if (route_.answer.status == 412) {
            refuse({412, "PreconditionFailed", "a condition of the request does not hold"});
        } else {
            send_text(
                object_head(route_.answer, route_.facts, "manifest", request_id_, keep_alive_));
        }
        return;
    }
    const attached::ObjectParts parts{route_.object, route_.answer.offset, route_.answer.length};
    window_ = PartWindow{parts, route_.dataset->config().guest ? kCopiesAhead : kPartsAhead};
    begin_part();
    if (route_.object.sample_count > 1 && state_ != State::kForwarding) {
        ask_behind();
    }
}

// Requests the next block for a client that reads an object range by range; the current response
// does not wait for that block.
void Connection::ask_behind() {
    const ObjectAnswer& answer = route_.answer;
    const auto next = route_.files->sequential().note(route_.object, answer.offset, answer.length);
    if (next && !route_.files->read_checked(*next)) {
        fetches_.push_back({route_.dataset, route_.files, *next, 0, kForNobody});
    }
}

// Sends the current part if it has arrived; otherwise waits for it.
void Connection::begin_part() {
    ask_ahead();
    if (auto answer = window_.take()) {
        send_part(*std::move(answer));
        return;
    }
    state_ = State::kFetching;
    deadline_ = TimePoint::max();
}

void Connection::ask_ahead() {
    while (const auto wanted = window_.take_wanted()) {
        if (auto found = route_.files->read_checked(wanted->part.id)) {
            window_.put(wanted->index, {std::move(found), "hit"});
        } else {
            fetches_.push_back(
                {route_.dataset,
                 route_.files,
                 wanted->part.id,
                 wanted->part.length,
                 wanted->index});
        }
    }
}

void Connection::on_fetched(std::size_t index, attached::FetchPool::Answer answer) {
    window_.put(index, std::move(answer));
    if (state_ == State::kFetching && index == window_.index()) {
        begin_part();
    }
}

void Connection::send_part(attached::FetchPool::Answer answer) {
    const attached::ObjectParts::Part part = window_.part();
    if (!answer.found || answer.found->view.bytes.size() != part.sample_bytes) {
        fall_back();
        return;
    }
    count_part(part, answer.source);
    if (answer.found->record_offset) {
        file_ = parts_.segments.open(route_.files, answer.found->view.seq);
        file_offset_ = static_cast<std::int64_t>(
            *answer.found->record_offset + domain::kRecordHeaderBytes + part.offset);
    }
    sample_ = std::move(answer.found->view);
    body_offset_ = part.offset;
    body_left_ = part.length;
    const bool is_first = window_.index() == 0;
    send_text(
        is_first ? object_head(route_.answer, route_.facts, answer.source, request_id_, keep_alive_)
                 : "");
}

// Lets the origin answer, or send the remaining bytes of a response that has begun. The origin must
// then have the same version of the object as the bytes already sent.
void Connection::fall_back() {
    if (route_.dataset->origin() != nullptr) {
        refuse(slow_down("neither the sidecar nor the origin gives this sample now"));
        return;
    }
    route_.dataset->count_forwarded();
    const ObjectAnswer& answer = route_.answer;
    if (route_.object.sample_count > 1) {
        bound_.etag = route_.facts.etag;
        bound_.must_match = answer.status == 206;
    }
    if (window_.index() > 0) {
        const std::uint64_t offset = window_.parts().offset_of(window_.index());
        bound_ = {
            std::string{route_.facts.etag},
            true,
            offset,
            answer.offset + answer.length - offset,
            route_.facts.size_bytes};
    }
    state_ = State::kForwarding;
}

void Connection::count_part(const attached::ObjectParts::Part& part, std::string_view source) {
    const bool was_begun = part.offset == 0;
    if (source == "hit") {
        route_.dataset->count_hit(part.id, part.length, was_begun);
    } else if (source == "origin") {
        route_.dataset->count_forwarded();
    } else {
        route_.dataset->count_fetched(part.length, was_begun);
    }
}

void Connection::send_text(std::string text) {
    out_ = std::move(text);
    out_sent_ = 0;
    state_ = State::kWriting;
    deadline_ = parts_.clock.now() + parts_.limits.stall;
}

void Connection::refuse(const S3Error& error) {
    keep_alive_ = keep_alive_ && !call_.head.has_body();
    send_text(error_response(error, call_, request_id_, keep_alive_));
}

Connection::Next Connection::write_some() {
    while (true) {
        if (!write_head() || !write_body()) {
            return would_block(errno) ? Next::kWrite : Next::kClose;
        }
        if (!window_.has_next()) {
            return finish_response();
        }
        file_.reset();
        sample_ = {};
        window_.advance();
        begin_part();
        if (state_ != State::kWriting) {
            return state_ == State::kFetching ? Next::kFetch : Next::kForward;
        }
    }
}

bool Connection::write_head() {
    while (out_sent_ < out_.size()) {
        const int flags = MSG_NOSIGNAL | (body_left_ > 0 ? MSG_MORE : 0);
        const ssize_t sent = ::send(fd(), out_.data() + out_sent_, out_.size() - out_sent_, flags);
        if (sent < 0) {
            return false;
        }
        out_sent_ += static_cast<std::size_t>(sent);
    }
    return true;
}

// If the segment's file was truncated meanwhile, the call fails (EIO, EFAULT) without SIGBUS,
// because only the kernel reads the file.
bool Connection::write_body() {
    while (body_left_ > 0) {
        ssize_t sent = 0;
        if (file_ != nullptr) {
            sent = ::sendfile(fd(), file_->get(), &file_offset_, body_left_);
        } else {
            const auto part = sample_.bytes.subspan(body_offset_, body_left_);
            sent = ::send(fd(), part.data(), part.size(), MSG_NOSIGNAL);
        }
        if (sent <= 0) {
            errno = sent == 0 ? EIO : errno;
            return false;
        }
        body_offset_ += static_cast<std::uint64_t>(sent);
        body_left_ -= static_cast<std::uint64_t>(sent);
        deadline_ = parts_.clock.now() + parts_.limits.stall;
    }
    return true;
}

Connection::Next Connection::finish_response() {
    file_.reset();
    sample_ = {};
    window_ = {};
    route_ = {};
    const TimePoint now = parts_.clock.now();
    if (keep_alive_) {
        state_ = State::kReading;
        deadline_ = now + (in_.empty() ? parts_.limits.idle : parts_.limits.head);
        return Next::kRead;
    }
    ::shutdown(fd(), SHUT_WR);
    state_ = State::kLingering;
    deadline_ = now + parts_.limits.linger;
    return linger();
}

Connection::Next Connection::linger() {
    in_.clear();
    if (receive()) {
        return Next::kRead;
    }
    return would_block(errno) ? Next::kRead : Next::kClose;
}

Connection::Forward Connection::take_forward() {
    return {
        std::move(socket_),
        std::move(in_),
        std::move(call_),
        std::move(request_id_),
        std::move(bound_)};
}

}  // namespace stoker::s3
