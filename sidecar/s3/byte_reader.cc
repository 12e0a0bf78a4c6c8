#include "sidecar/s3/byte_reader.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <utility>

#include <poll.h>
#include <sys/socket.h>

namespace stoker::s3 {

namespace {

constexpr std::size_t kLineEndBytes = 2;
constexpr std::size_t kReadBytes = 64 << 10;
constexpr std::size_t kChunkLineBytesMax = 1024;
constexpr std::size_t kTrailerLineBytesMax = 4096;
constexpr std::size_t kTrailersMax = 32;

Status wait_for(int socket, short events, Duration patience) {
    pollfd waiting{socket, events, 0};
    const auto limit = std::chrono::ceil<std::chrono::milliseconds>(patience);
    int ready = 0;
    do {
        ready = ::poll(&waiting, 1, static_cast<int>(limit.count()));
    } while (ready < 0 && errno == EINTR);
    if (ready == 0) {
        return fail(ErrorCode::kDeadlineExceeded, "the client is silent");
    }
    return {};
}

bool would_block(int error) {
    return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

tl::unexpected<Error> cut_short() {
    return fail(ErrorCode::kInvalidArgument, "the body is cut short or its chunks are malformed");
}

}  // namespace

Result<std::string> ByteReader::read_line(std::size_t bytes_max) {
    std::string line;
    while (line.size() < bytes_max) {
        char byte = 0;
        STOKER_TRY(const std::size_t count, read_some({&byte, 1}));
        if (count == 0) {
            return cut_short();
        }
        if (byte == '\n' && line.ends_with('\r')) {
            line.pop_back();
            return line;
        }
        line += byte;
    }
    return cut_short();
}

SocketReader::SocketReader(int socket, std::string buffered, Duration patience)
    : socket_(socket),
      buffer_(std::move(buffered)),
      patience_(patience) {}

Result<std::size_t> SocketReader::read_some(std::span<char> out) {
    if (taken_ == buffer_.size()) {
        STOKER_TRY_VOID(fill());
    }
    const std::size_t count = std::min(out.size(), buffer_.size() - taken_);
    std::copy_n(buffer_.data() + taken_, count, out.data());
    taken_ += count;
    return count;
}

std::string SocketReader::take_rest() {
    std::string rest = buffer_.substr(taken_);
    buffer_.clear();
    taken_ = 0;
    return rest;
}

Status SocketReader::fill() {
    buffer_.resize(kReadBytes);
    taken_ = 0;
    while (true) {
        const ssize_t got = ::recv(socket_, buffer_.data(), buffer_.size(), 0);
        if (got > 0) {
            buffer_.resize(static_cast<std::size_t>(got));
            return {};
        }
        if (got == 0 || !would_block(errno)) {
            buffer_.clear();
            return fail(ErrorCode::kUnavailable, "the client has gone");
        }
        if (auto waited = wait_for(socket_, POLLIN, patience_); !waited) {
            buffer_.clear();
            return waited;
        }
    }
}

LengthReader::LengthReader(ByteReader& from, std::uint64_t length)
    : from_(from),
      left_(length) {}

Result<std::size_t> LengthReader::read_some(std::span<char> out) {
    if (left_ == 0) {
        return std::size_t{0};
    }
    const auto wanted = static_cast<std::size_t>(std::min<std::uint64_t>(out.size(), left_));
    STOKER_TRY(const std::size_t count, from_.read_some(out.first(wanted)));
    left_ -= count;
    return count;
}

ChunkReader::ChunkReader(ByteReader& from)
    : from_(from) {}

Result<std::size_t> ChunkReader::read_some(std::span<char> out) {
    if (left_ == 0 && !is_over_) {
        STOKER_TRY_VOID(begin_chunk());
    }
    if (is_over_) {
        return std::size_t{0};
    }
    const auto wanted = static_cast<std::size_t>(std::min<std::uint64_t>(out.size(), left_));
    STOKER_TRY(const std::size_t count, from_.read_some(out.first(wanted)));
    if (count == 0) {
        return cut_short();
    }
    left_ -= count;
    if (left_ == 0) {
        STOKER_TRY_VOID(end_chunk());
    }
    return count;
}

Status ChunkReader::begin_chunk() {
    STOKER_TRY(const std::string line, from_.read_line(kChunkLineBytesMax));
    const char* end = line.data() + std::min(line.find(';'), line.size());
    const auto read = std::from_chars(line.data(), end, left_, 16);
    if (read.ec != std::errc{} || read.ptr != end) {
        left_ = 0;
        return cut_short();
    }
    if (left_ > 0) {
        return {};
    }
    for (std::size_t lines = 0; lines <= kTrailersMax; ++lines) {
        STOKER_TRY(const std::string trailer, from_.read_line(kTrailerLineBytesMax));
        if (trailer.empty()) {
            is_over_ = true;
            return {};
        }
    }
    return cut_short();
}

Status ChunkReader::end_chunk() {
    STOKER_TRY_VOID(from_.read_line(kLineEndBytes));  // fits nothing but the end of a line
    return {};
}

Status write_all(int socket, std::string_view bytes, Duration patience) {
    while (!bytes.empty()) {
        const ssize_t sent = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (sent >= 0) {
            bytes.remove_prefix(static_cast<std::size_t>(sent));
        } else if (!would_block(errno)) {
            return fail(ErrorCode::kUnavailable, "the client has gone");
        } else {
            STOKER_TRY_VOID(wait_for(socket, POLLOUT, patience));
        }
    }
    return {};
}

}  // namespace stoker::s3
