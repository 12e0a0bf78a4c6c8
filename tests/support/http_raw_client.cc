#include "tests/support/http_raw_client.h"

#include <array>
#include <chrono>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

namespace stoker::test {

namespace {

using SteadyTime = std::chrono::steady_clock::time_point;

Duration left_until(SteadyTime end) {
    return end - std::chrono::steady_clock::now();
}

}  // namespace

HttpRawClient::HttpRawClient(std::uint16_t port)
    : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port);
    if (::connect(fd_.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) {
        fd_.reset();
    }
}

bool HttpRawClient::send(std::string_view bytes) {
    while (!bytes.empty()) {
        const auto count = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (count <= 0) {
            return false;
        }
        bytes.remove_prefix(static_cast<std::size_t>(count));
    }
    return true;
}

HttpRawClient::Read HttpRawClient::read_some(std::string& into, Duration limit) {
    pollfd entry{fd_.get(), POLLIN, 0};
    const auto ms = std::chrono::ceil<std::chrono::milliseconds>(limit).count();
    if (ms <= 0 || ::poll(&entry, 1, static_cast<int>(ms)) <= 0) {
        return Read::kTimeout;
    }
    std::array<char, 65536> chunk{};
    const auto count = ::recv(fd_.get(), chunk.data(), chunk.size(), 0);
    if (count <= 0) {
        return Read::kClosed;
    }
    into.append(chunk.data(), static_cast<std::size_t>(count));
    return Read::kData;
}

std::string HttpRawClient::read_until_closed(Duration limit) {
    const SteadyTime end = std::chrono::steady_clock::now() + limit;
    while (read_some(received_, left_until(end)) == Read::kData) {
    }
    return std::move(received_);
}

bool HttpRawClient::read_until(std::string_view text, Duration limit) {
    const SteadyTime end = std::chrono::steady_clock::now() + limit;
    while (received_.find(text) == std::string::npos) {
        if (read_some(received_, left_until(end)) != Read::kData) {
            return false;
        }
    }
    return true;
}

bool HttpRawClient::wait_until_closed(Duration limit) {
    const SteadyTime end = std::chrono::steady_clock::now() + limit;
    while (true) {
        switch (read_some(received_, left_until(end))) {
            case Read::kClosed:
                return true;
            case Read::kTimeout:
                return false;
            case Read::kData:
                break;
        }
    }
}

}  // namespace stoker::test
