#include "client/src/core/sidecar_client.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "client/src/core/mapped_file.h"

namespace stoker::client {

namespace {

// Values per frame; small enough for a socket's buffer to take most of a frame at once.
constexpr std::size_t kValuesPerFrame = 4096;

Result<sockaddr_un> socket_address(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.empty() || path.size() >= sizeof(address.sun_path)) {
        return fail(
            ErrorCode::kInvalidArgument,
            fmt::format(
                "socket path '{}' must have 1 to {} bytes", path, sizeof(address.sun_path) - 1));
    }
    std::ranges::copy(path, static_cast<char*>(address.sun_path));
    return address;
}

// A missing sidecar is an ordinary state, so its error is always retryable.
Error connection_error(int error_number, const std::string& context) {
    Error error = system_error(error_number, context);
    if (error.code == ErrorCode::kNotFound) {
        error.code = ErrorCode::kUnavailable;
    }
    return error;
}

// Creates a sealed memfd that contains `parts`, one after the other.
Result<UniqueFd> sealed_memfd(std::initializer_list<std::span<const std::byte>> parts) {
    UniqueFd fd{::memfd_create("stoker", MFD_CLOEXEC | MFD_ALLOW_SEALING)};
    if (!fd.valid()) {
        return fail(system_error(errno, "making a memfd"));
    }
    for (std::span<const std::byte> bytes : parts) {
        while (!bytes.empty()) {
            const ssize_t wrote = ::write(fd.get(), bytes.data(), bytes.size());
            if (wrote < 0) {
                return fail(system_error(errno, "writing a memfd"));
            }
            bytes = bytes.subspan(static_cast<std::size_t>(wrote));
        }
    }
    const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL;
    if (::fcntl(fd.get(), F_ADD_SEALS, seals) != 0) {
        return fail(system_error(errno, "sealing a memfd"));
    }
    return fd;
}

// Sends `bytes`, with the descriptor if there is one; returns sendmsg's result.
ssize_t send_some(int socket, std::span<const std::byte> bytes, int passed_fd) {
    iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof(int))> control{};
    if (passed_fd >= 0) {
        message.msg_control = control.data();
        message.msg_controllen = control.size();
        cmsghdr* rights = CMSG_FIRSTHDR(&message);
        rights->cmsg_level = SOL_SOCKET;
        rights->cmsg_type = SCM_RIGHTS;
        rights->cmsg_len = CMSG_LEN(sizeof(int));
        std::memcpy(CMSG_DATA(rights), &passed_fd, sizeof(int));
    }
    return ::sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

bool would_block(int error_number) {
    return error_number == EAGAIN || error_number == EWOULDBLOCK || error_number == EINTR;
}

Error error_of(const local::ErrorReply& reply) {
    const bool known = reply.code <= static_cast<std::uint16_t>(ErrorCode::kInternal);
    return {known ? static_cast<ErrorCode>(reply.code) : ErrorCode::kInternal, reply.message};
}

Error unexpected_answer() {
    return {ErrorCode::kInvalidArgument, "the sidecar answered with an unexpected frame"};
}

// Number of forks between the first process and this one. getpid() would do, but is a system call.
std::uint32_t fork_count() {
    static std::atomic<std::uint32_t> count{0};
    [[maybe_unused]] static const int registered =
        ::pthread_atfork(nullptr, nullptr, [] { count.fetch_add(1, std::memory_order_relaxed); });
    return count.load(std::memory_order_relaxed);
}

}  // namespace

SidecarClient::SidecarClient(UniqueFd socket, const Clock& clock, Interrupted interrupted)
    : socket_(std::move(socket)),
      clock_(&clock),
      interrupted_(std::move(interrupted)),
      forks_(fork_count()) {}

Result<SidecarClient> SidecarClient::connect(
    const std::string& socket_path,
    const local::Hello& hello,
    const Clock& clock,
    TimePoint deadline,
    Interrupted interrupted) {
    STOKER_TRY(const sockaddr_un address, socket_address(socket_path));
    UniqueFd socket{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
    if (!socket.valid()) {
        return fail(system_error(errno, "making a socket"));
    }
    // A unix socket connects at once or, with a full backlog, fails with EAGAIN, which is retryable
    // too.
    if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) !=
        0) {
        return fail(connection_error(errno, fmt::format("connecting to {}", socket_path)));
    }
    SidecarClient client{std::move(socket), clock, std::move(interrupted)};
    STOKER_TRY_VOID(
        client.send_all(local::encode_frame(hello, client.next_request_id_++), deadline));
    return client;
}

bool SidecarClient::has_answer() const {
    pollfd waiting{socket_.get(), POLLIN, 0};
    return !is_usable() || ::poll(&waiting, 1, 0) != 0;
}

Result<std::variant<local::Welcome, local::Listing>> SidecarClient::await_welcome(
    TimePoint deadline) {
    STOKER_TRY(local::Message answer, receive(deadline));
    if (auto* listing = std::get_if<local::Listing>(&answer)) {
        return *listing;
    }
    if (const auto* refused = std::get_if<local::ErrorReply>(&answer)) {
        return close_with(error_of(*refused));
    }
    auto* welcome = std::get_if<local::Welcome>(&answer);
    if (welcome == nullptr) {
        return close_with(unexpected_answer());
    }
    if (welcome->version != local::kProtocolVersion) {
        return close_with(
            {ErrorCode::kInvalidArgument,
             fmt::format(
                 "the sidecar speaks protocol version {}, this client version {}",
                 welcome->version,
                 local::kProtocolVersion)});
    }
    return std::move(*welcome);
}

template <class Answer>
Result<Answer> SidecarClient::ask(
    const local::Message& message, TimePoint deadline, int passed_fd) {
    STOKER_TRY(local::Message answer, request(message, deadline, passed_fd));
    auto* fits = std::get_if<Answer>(&answer);
    if (fits == nullptr) {
        return close_with(unexpected_answer());
    }
    return std::move(*fits);
}

Result<local::Fetched> SidecarClient::fetch(
    std::span<const std::uint64_t> samples, TimePoint deadline) {
    local::Fetch fetch{{samples.begin(), samples.end()}};
    STOKER_TRY(auto fetched, ask<local::Fetched>(fetch, deadline));
    if (fetched.statuses.size() != samples.size()) {
        return close_with(unexpected_answer());
    }
    return fetched;
}

Status SidecarClient::send_plan(
    std::uint64_t epoch,
    std::span<const std::uint64_t> samples,
    std::uint64_t start,
    std::span<const std::uint64_t> ahead,
    TimePoint deadline) {
    const auto said = ahead.first(std::min<std::size_t>(ahead.size(), local::kAheadSamplesMax));
    STOKER_TRY(const UniqueFd plan, sealed_memfd({std::as_bytes(samples), std::as_bytes(said)}));
    STOKER_TRY_VOID(
        ask<local::Planned>(local::Plan{epoch, samples.size(), start}, deadline, plan.get()));
    return {};
}

Result<local::Begun> SidecarClient::begin(
    local::Begin begin,
    std::span<const std::byte> served,
    std::span<const std::byte> snapshot,
    TimePoint deadline) {
    begin.served_bytes = served.size();
    begin.snapshot_bytes = snapshot.size();
    if (served.empty() && snapshot.empty()) {
        return ask<local::Begun>(begin, deadline);
    }
    STOKER_TRY(const UniqueFd memfd, sealed_memfd({served, snapshot}));
    return ask<local::Begun>(begin, deadline, memfd.get());
}

Result<local::Drawn> SidecarClient::draw(
    std::uint64_t epoch, std::uint32_t count, TimePoint deadline) {
    STOKER_TRY(auto drawn, ask<local::Drawn>(local::Draw{epoch, count}, deadline));
    if (drawn.epoch != epoch || drawn.served.size() > count) {
        return close_with(unexpected_answer());
    }
    return drawn;
}

Result<local::EpochTally> SidecarClient::tally(std::uint64_t epoch, TimePoint deadline) {
    return ask<local::EpochTally>(local::AskEpoch{epoch}, deadline);
}

Result<local::Snapshot> SidecarClient::snapshot(TimePoint deadline) {
    return ask<local::Snapshot>(local::AskSnapshot{}, deadline);
}

Result<local::Probe> SidecarClient::ask_probe(TimePoint deadline) {
    return ask<local::Probe>(local::AskProbe{}, deadline);
}

// Sends the values of `count` samples in as many frames as needed: make(slice) returns one frame;
// slice() selects the frame's values from a span. False: the sidecar is busy, and the remaining
// values were not sent.
template <class Make>
Result<bool> SidecarClient::send_in_frames(std::size_t count, Make make) {
    bool sent = true;
    for (std::size_t at = 0; at < count && sent; at += kValuesPerFrame) {
        const auto slice = [at, size = std::min(kValuesPerFrame, count - at)](auto values) {
            const auto part = values.empty() ? values : values.subspan(at, size);
            return std::vector(part.begin(), part.end());
        };
        STOKER_TRY(sent, send_now(make(slice)));
    }
    return sent;
}

Result<bool> SidecarClient::send_losses(
    std::uint64_t epoch,
    std::span<const std::uint64_t> samples,
    std::span<const float> losses,
    std::span<const float> p_others) {
    return send_in_frames(samples.size(), [&](const auto& slice) {
        return local::Losses{epoch, slice(samples), slice(losses), slice(p_others)};
    });
}

Result<bool> SidecarClient::send_similarity(
    std::span<const std::uint64_t> samples, std::span<const std::uint64_t> hashes) {
    return send_in_frames(samples.size(), [&](const auto& slice) {
        return local::Similarity{slice(samples), slice(hashes)};
    });
}

Result<bool> SidecarClient::send_consumed(
    std::uint64_t epoch, std::span<const std::uint64_t> samples) {
    return send_now(local::Consumed{epoch, {samples.begin(), samples.end()}});
}

Result<bool> SidecarClient::send_report(const local::Report& report) {
    return send_now(report);
}

Result<bool> SidecarClient::send_probed(const local::Probed& probed) {
    return send_now(probed);
}

bool SidecarClient::is_usable() const {
    return socket_.valid() && forks_ == fork_count();
}

Result<local::Message> SidecarClient::request(
    const local::Message& message, TimePoint deadline, int passed_fd) {
    const std::uint64_t request_id = next_request_id_++;
    if (!unsent_.empty()) {
        STOKER_TRY_VOID(send_all(std::exchange(unsent_, {}), deadline));
    }
    STOKER_TRY_VOID(send_all(local::encode_frame(message, request_id), deadline, passed_fd));
    STOKER_TRY(local::Message answer, receive(deadline, request_id));
    if (const auto* refused = std::get_if<local::ErrorReply>(&answer)) {
        return fail(error_of(*refused));
    }
    return answer;
}

Result<bool> SidecarClient::send_now(const local::Message& message) {
    if (!is_usable()) {
        return fail(ErrorCode::kUnavailable, "no connection to the sidecar");
    }
    STOKER_TRY(const bool flushed, flush_now());
    if (!flushed) {
        return false;
    }
    unsent_ = local::encode_frame(message, 0);
    const std::size_t whole = unsent_.size();
    STOKER_TRY_VOID(flush_now());
    const bool refused = unsent_.size() == whole;
    if (refused) {
        unsent_.clear();
    }
    return !refused;  // the rest of a partly sent frame must precede the next frame
}

// Sends unsent bytes without waiting. True: all are sent.
Result<bool> SidecarClient::flush_now() {
    std::size_t sent = 0;
    while (sent < unsent_.size()) {
        const ssize_t count = send_some(socket_.get(), std::span{unsent_}.subspan(sent), -1);
        if (count < 0 && !would_block(errno)) {
            return close_with(connection_error(errno, "writing to the sidecar"));
        }
        if (count < 0) {
            break;
        }
        sent += static_cast<std::size_t>(count);
    }
    unsent_.erase(unsent_.begin(), unsent_.begin() + static_cast<std::ptrdiff_t>(sent));
    return unsent_.empty();
}

Status SidecarClient::send_all(
    std::span<const std::byte> bytes, TimePoint deadline, int passed_fd) {
    if (!is_usable()) {
        return fail(ErrorCode::kUnavailable, "no connection to the sidecar");
    }
    while (!bytes.empty()) {
        const ssize_t sent = send_some(socket_.get(), bytes, passed_fd);
        if (sent >= 0) {
            bytes = bytes.subspan(static_cast<std::size_t>(sent));
            passed_fd = -1;
        } else if (!would_block(errno)) {
            return close_with(connection_error(errno, "writing to the sidecar"));
        } else if (Status waited = wait_for(POLLOUT, deadline); !waited) {
            return waited;
        }
    }
    return {};
}

Result<local::Message> SidecarClient::receive(
    TimePoint deadline, std::optional<std::uint64_t> request_id) {
    if (!is_usable()) {
        return fail(ErrorCode::kUnavailable, "no connection to the sidecar");
    }
    std::array<std::byte, local::kFrameHeaderBytes> raw{};
    STOKER_TRY_VOID(receive_all(raw, deadline));
    auto header = local::decode_frame_header(raw);
    if (!header) {
        return close_with(std::move(header).error());
    }
    if (request_id && header->request_id != *request_id) {
        return close_with(unexpected_answer());
    }
    std::vector<std::byte> payload(header->payload_bytes);
    STOKER_TRY_VOID(receive_all(payload, deadline));
    auto message = local::decode_payload(header->type, payload);
    if (!message) {
        return close_with(std::move(message).error());
    }
    return message;
}

Status SidecarClient::receive_all(std::span<std::byte> out, TimePoint deadline) {
    while (!out.empty()) {
        const ssize_t got = ::recv(socket_.get(), out.data(), out.size(), MSG_DONTWAIT);
        if (got > 0) {
            out = out.subspan(static_cast<std::size_t>(got));
        } else if (got == 0) {
            return close_with({ErrorCode::kUnavailable, "the sidecar hung up"});
        } else if (!would_block(errno)) {
            return close_with(connection_error(errno, "reading from the sidecar"));
        } else if (Status waited = wait_for(POLLIN, deadline); !waited) {
            return waited;
        }
    }
    return {};
}

Status SidecarClient::wait_for(short events, TimePoint deadline) {
    using std::chrono::milliseconds;
    pollfd waiting{socket_.get(), events, 0};
    while (true) {
        const auto left = std::chrono::ceil<milliseconds>(deadline - clock_->now());
        if (left <= milliseconds::zero()) {
            return close_with({ErrorCode::kDeadlineExceeded, "the sidecar did not answer in time"});
        }
        const auto slice = std::min(left, milliseconds{60'000});
        const int ready = ::poll(&waiting, 1, static_cast<int>(slice.count()));
        if (ready > 0) {
            return {};
        }
        if (ready < 0 && errno != EINTR) {
            return close_with(connection_error(errno, "waiting for the sidecar"));
        }
        if (ready < 0 && interrupted_ && interrupted_()) {
            return close_with({ErrorCode::kCancelled, "interrupted"});
        }
    }
}

tl::unexpected<Error> SidecarClient::close_with(Error error) {
    socket_.reset();
    return fail(std::move(error));
}

}  // namespace stoker::client
