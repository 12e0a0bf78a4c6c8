#include "bench/peers/unix_stream.h"

#include <algorithm>
#include <cstring>

#include <fmt/core.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "bench/driver.h"

namespace stoker::bench {

namespace {

constexpr std::size_t kBufferBytes = std::size_t{1} << 20;
constexpr std::string_view kEndOfLine = "\r\n";

}  // namespace

UnixStream::UnixStream(const std::string& path)
    : path_(path),
      socket_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)),
      buffer_(kBufferBytes) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof(address.sun_path)) {
        die(fmt::format("{} is too long for a socket", path));
    }
    path.copy(address.sun_path, path.size());
    if (::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) !=
        0) {
        die(fmt::format("cannot connect to {}", path));
    }
}

void UnixStream::send(std::string_view text) {
    while (!text.empty()) {
        const ssize_t sent = ::send(socket_.get(), text.data(), text.size(), MSG_NOSIGNAL);
        if (sent <= 0) {
            die(fmt::format("cannot send to {}", path_));
        }
        text.remove_prefix(static_cast<std::size_t>(sent));
    }
}

std::string_view UnixStream::read_line() {
    for (;;) {
        const std::string_view unread{buffer_.data() + begin_, end_ - begin_};
        const auto length = unread.find(kEndOfLine);
        if (length != std::string_view::npos) {
            begin_ += length + kEndOfLine.size();
            return unread.substr(0, length);
        }
        fill(unread.size() + 1);
    }
}

std::span<const std::byte> UnixStream::read(std::size_t count) {
    fill(count);
    const auto bytes = std::as_bytes(std::span{buffer_}).subspan(begin_, count);
    begin_ += count;
    return bytes;
}

void UnixStream::fill(std::size_t count) {
    if (end_ - begin_ >= count) {
        return;
    }
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
    buffer_.resize(std::max(buffer_.size(), count));
    while (end_ < count) {
        const ssize_t got = ::recv(socket_.get(), buffer_.data() + end_, buffer_.size() - end_, 0);
        if (got <= 0) {
            die(fmt::format("{} closed the connection", path_));
        }
        end_ += static_cast<std::size_t>(got);
    }
}

}  // namespace stoker::bench
