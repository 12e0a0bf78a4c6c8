#include "sidecar/service/frame_socket.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/core.h>
#include <sys/socket.h>

namespace stoker::sidecar {

namespace {

constexpr std::size_t kReadChunk = std::size_t{64} << 10U;
constexpr int kReadsPerTurn = 4;  // so that one busy client does not starve the others
constexpr std::size_t kDescriptorsMax = 4;

}  // namespace

FrameSocket::FrameSocket(EventLoop& loop, UniqueFd socket, OnFrame on_frame, OnClosed on_closed)
    : loop_(loop),
      socket_(std::move(socket)),
      on_frame_(std::move(on_frame)),
      on_closed_(std::move(on_closed)),
      tasks_(loop) {
    loop_.watch(socket_.get(), [this](IoReady ready) { on_io(ready); });
}

FrameSocket::~FrameSocket() {
    close();
}

void FrameSocket::send_error(const Error& error, std::uint64_t request_id) {
    send(local::ErrorReply{static_cast<std::uint16_t>(error.code), error.message}, request_id);
}

void FrameSocket::send(const local::Message& message, std::uint64_t request_id, UniqueFd fd) {
    if (!is_open() || closing_) {
        return;
    }
    auto frame = local::encode_frame(message, request_id);
    backlog_bytes_ += frame.size();
    outgoing_.push_back({std::move(frame), std::move(fd)});
    was_high_ = was_high_ || backlog_bytes_ > kBacklogLow;
    if (backlog_bytes_ > limits_.backlog_bytes_max || !has_room()) {
        closing_ = true;
        fail_later("the peer does not read the answers sent to it");
        return;
    }
    flush();
}

// Counts the bytes that this socket holds. False: a shared limit is exceeded, and this socket has
// grown and holds more than `little`.
bool FrameSocket::has_room() {
    if (room_ == nullptr) {
        return true;
    }
    const std::size_t held = is_open() ? backlog_bytes_ + incoming_used_ : 0;
    const bool grows = held > held_bytes_;
    bool is_full = false;
    for (SharedRoom* room = room_.get(); room != nullptr; room = room->whole.get()) {
        room->bytes += held - held_bytes_;
        is_full = is_full || room->bytes > room->bytes_max;
    }
    held_bytes_ = held;
    return !grows || held <= room_->little || !is_full;
}

void FrameSocket::set_paused(bool paused) {
    paused_ = paused;
    if (!is_open()) {
        return;
    }
    if (!paused) {
        hand_out_frames();
    }
    update_interest();
}

bool FrameSocket::may_read() {
    if (paused_ || closing_ || waiting_) {
        return false;
    }
    if (throttle_ == nullptr || !throttle_->is_spent()) {
        return true;
    }
    wait_for_throttle();
    return false;
}

void FrameSocket::wait_for_throttle() {
    waiting_ = true;
    update_interest();
    throttle_->on_resume(tasks_.guarded([this] {
        waiting_ = false;
        go_on();
    }));
}

// Handles the frames already received, then reads once more without waiting for the event loop;
// sockets with more frames would otherwise take all of the loop's time.
void FrameSocket::go_on() {
    if (is_open()) {
        const ThrottledTime time{throttle_.get()};
        hand_out_frames();
        read_some();
    }
    give_back_buffer();
    if (is_open()) {
        update_interest();
    }
}

void FrameSocket::note_work(Duration time) {
    if (throttle_ != nullptr) {
        throttle_->spend(time);
    }
}

void FrameSocket::close_when_sent() {
    closing_ = true;
    if (is_open()) {
        flush();
        update_interest();
    }
}

void FrameSocket::close() {
    if (is_open()) {
        loop_.forget(socket_.get());
        socket_.reset();
        outgoing_.clear();
        descriptors_.clear();
        has_room();
    }
}

void FrameSocket::on_io(IoReady ready) {
    if (ready.writable) {
        flush();
    }
    if (!is_open() || !ready.readable) {
        return;
    }
    if (paused_ || closing_ || waiting_) {
        fail("");  // an event while paused: the peer is gone
        return;
    }
    {
        const ThrottledTime time{throttle_.get()};
        read_some();
    }
    give_back_buffer();
}

// Frees unused memory: thousands of guest connections that send nothing, or half a frame, must hold
// only the bytes that have arrived.
void FrameSocket::give_back_buffer() {
    if (throttle_ != nullptr) {
        incoming_.resize(incoming_used_);
        incoming_.shrink_to_fit();
    }
}

void FrameSocket::read_some() {
    for (int turn = 0; turn < kReadsPerTurn && is_open() && may_read(); ++turn) {
        if (!receive()) {
            return;
        }
        hand_out_frames();
    }
}

// False: nothing more to read now, or the connection has ended.
bool FrameSocket::receive() {
    incoming_.resize(incoming_used_ + kReadChunk);
    iovec part{incoming_.data() + incoming_used_, kReadChunk};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(kDescriptorsMax * sizeof(int))> control{};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    const ssize_t count = ::recvmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (count < 0) {
        if (errno != EAGAIN && errno != EINTR) {
            fail(fmt::format("reading: {}", std::strerror(errno)));
        }
        return false;
    }
    if (!take_descriptors(message)) {
        fail("the peer sent too many file descriptors");
        return false;
    }
    if (count == 0) {
        fail(incoming_used_ == 0 ? "" : "the peer hung up in the middle of a frame");
        return false;
    }
    incoming_used_ += static_cast<std::size_t>(count);
    return true;
}

bool FrameSocket::take_descriptors(msghdr& message) {
    for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr;
         part = CMSG_NXTHDR(&message, part)) {
        if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) {
            continue;
        }
        const std::size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (std::size_t i = 0; i < count; ++i) {
            int fd = -1;
            std::memcpy(&fd, CMSG_DATA(part) + i * sizeof(int), sizeof(int));
            descriptors_.emplace_back(fd);
        }
    }
    return (message.msg_flags & MSG_CTRUNC) == 0 && descriptors_.size() <= kDescriptorsMax;
}

void FrameSocket::hand_out_frames() {
    if (std::exchange(handing_out_, true)) {
        return;  // the outer call of this function continues
    }
    std::size_t done = 0;
    while (is_open() && may_read()) {
        const std::size_t taken = take_frame({incoming_.data() + done, incoming_used_ - done});
        if (taken == 0) {
            break;
        }
        done += taken;
    }
    std::copy(
        incoming_.begin() + static_cast<std::ptrdiff_t>(done),
        incoming_.begin() + static_cast<std::ptrdiff_t>(incoming_used_),
        incoming_.begin());
    incoming_used_ -= done;
    handing_out_ = false;
    if (is_open() && !has_room()) {
        fail("unread frames and answers of all connections exceed their memory limit");
    }
}

// Hands out the first frame of `bytes`. Returns its length; 0: incomplete, or the connection has
// ended.
std::size_t FrameSocket::take_frame(std::span<const std::byte> bytes) {
    if (bytes.size() < local::kFrameHeaderBytes) {
        return 0;
    }
    const auto header = local::decode_frame_header(bytes.first(local::kFrameHeaderBytes));
    if (!header) {
        fail(header.error().message);
        return 0;
    }
    if (header->payload_bytes > limits_.payload_bytes_max) {
        fail(fmt::format("frame of {} bytes exceeds the limit", header->payload_bytes));
        return 0;
    }
    const std::size_t size = local::kFrameHeaderBytes + header->payload_bytes;
    if (bytes.size() < size) {
        return 0;
    }
    auto message = local::decode_payload(
        header->type, bytes.subspan(local::kFrameHeaderBytes, header->payload_bytes));
    if (message) {
        on_frame_({header->request_id, *std::move(message), take_descriptor(header->type)});
    } else {
        send_error(message.error(), header->request_id);
        close_when_sent();
    }
    return size;
}

UniqueFd FrameSocket::take_descriptor(local::FrameType type) {
    UniqueFd fd;
    const bool may_carry = type == local::FrameType::kPlan || type == local::FrameType::kBegin;
    if (may_carry && !descriptors_.empty()) {
        fd = std::move(descriptors_.front());
        descriptors_.pop_front();
    }
    return fd;
}

void FrameSocket::flush() {
    while (is_open() && !outgoing_.empty()) {
        if (!send_one(outgoing_.front())) {
            break;
        }
        backlog_bytes_ -= outgoing_.front().bytes.size();
        outgoing_.pop_front();
    }
    has_room();
    if (is_open()) {
        update_interest();
    }
    if (is_open() && closing_ && outgoing_.empty()) {
        fail_later("");
    }
    if (is_open() && !closing_ && was_high_ && backlog_bytes_ <= kBacklogLow) {
        was_high_ = false;
        if (on_drained_) {
            on_drained_();
        }
    }
}

// Sends as much of the frame as the socket takes. False: part of it is unsent.
bool FrameSocket::send_one(Outgoing& frame) {
    while (frame.sent < frame.bytes.size()) {
        iovec part{frame.bytes.data() + frame.sent, frame.bytes.size() - frame.sent};
        alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
        msghdr message{};
        message.msg_iov = &part;
        message.msg_iovlen = 1;
        if (frame.fd.valid()) {
            message.msg_control = control.data();
            message.msg_controllen = control.size();
            cmsghdr* header = CMSG_FIRSTHDR(&message);
            header->cmsg_level = SOL_SOCKET;
            header->cmsg_type = SCM_RIGHTS;
            header->cmsg_len = CMSG_LEN(sizeof(int));
            const int fd = frame.fd.get();
            std::memcpy(CMSG_DATA(header), &fd, sizeof(int));
        }
        const ssize_t count = ::sendmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count < 0) {
            // The read side reports a broken pipe, because it may still have frames for us.
            return errno != EAGAIN && (frame.sent = frame.bytes.size(), true);
        }
        frame.fd.reset();
        frame.sent += static_cast<std::size_t>(count);
    }
    return true;
}

void FrameSocket::update_interest() {
    loop_.set_interest(socket_.get(), !paused_ && !closing_ && !waiting_, !outgoing_.empty());
}

void FrameSocket::fail(const std::string& reason) {
    if (is_open()) {
        close();
        on_closed_(reason);
    }
}

// Fails from the event loop, for callers that still use this connection.
void FrameSocket::fail_later(const std::string& reason) {
    tasks_.post([this, reason] { fail(reason); });
}

}  // namespace stoker::sidecar
