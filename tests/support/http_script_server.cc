#include "tests/support/http_script_server.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include <arpa/inet.h>
#include <fmt/core.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

namespace stoker::test {

namespace {

std::string lower(std::string text) {
    std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) {
        return static_cast<char>(std::tolower(c));
    });
    return text;
}

ScriptRequest parse_head(const std::string& head) {
    ScriptRequest request;
    request.raw_head = head;
    const auto line_end = head.find("\r\n");
    const std::string line = head.substr(0, line_end);
    const auto first = line.find(' ');
    const auto second = line.find(' ', first + 1);
    request.method = line.substr(0, first);
    request.target = line.substr(first + 1, second - first - 1);
    for (auto at = line_end + 2; at < head.size();) {
        const auto end = std::min(head.find("\r\n", at), head.size());
        const std::string header = head.substr(at, end - at);
        if (const auto colon = header.find(':'); colon != std::string::npos) {
            const auto value = header.find_first_not_of(' ', colon + 1);
            request.headers[lower(header.substr(0, colon))] =
                value == std::string::npos ? "" : header.substr(value);
        }
        at = end + 2;
    }
    return request;
}

std::size_t body_length(const ScriptRequest& request) {
    std::size_t length = 0;
    if (const auto found = request.headers.find("content-length"); found != request.headers.end()) {
        const std::string& text = found->second;
        std::from_chars(text.data(), text.data() + text.size(), length);
    }
    return length;
}

bool receive_more(int fd, std::string& buffer) {
    std::array<char, 65536> chunk{};
    const auto count = ::recv(fd, chunk.data(), chunk.size(), 0);
    if (count <= 0) {
        return false;
    }
    buffer.append(chunk.data(), static_cast<std::size_t>(count));
    return true;
}

// Copies one piece. False: `from` has ended, or `to` accepts no bytes.
bool pass_on(int from, int to) {
    std::string bytes;
    return receive_more(from, bytes) &&
           ::send(to, bytes.data(), bytes.size(), MSG_NOSIGNAL) == std::ssize(bytes);
}

}  // namespace

std::optional<ScriptRequest> ScriptConnection::read_request() {
    std::size_t head_end = 0;
    while ((head_end = buffered_.find("\r\n\r\n")) == std::string::npos) {
        if (!receive_more(fd_, buffered_)) {
            return std::nullopt;
        }
    }
    ScriptRequest request = parse_head(buffered_.substr(0, head_end));
    const std::size_t length = body_length(request);
    while (buffered_.size() < head_end + 4 + length) {
        if (!receive_more(fd_, buffered_)) {
            return std::nullopt;
        }
    }
    request.body = buffered_.substr(head_end + 4, length);
    buffered_.erase(0, head_end + 4 + length);
    return request;
}

bool ScriptConnection::send(std::string_view bytes) {
    while (!bytes.empty()) {
        const auto count = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (count <= 0) {
            return false;
        }
        bytes.remove_prefix(static_cast<std::size_t>(count));
    }
    return true;
}

void ScriptConnection::reply(int status, std::string_view body, std::string_view extra_headers) {
    send(fmt::format(
        "HTTP/1.1 {} X\r\nContent-Length: {}\r\n{}\r\n{}",
        status,
        body.size(),
        extra_headers,
        body));
}

bool ScriptConnection::wait_for_hang_up(Duration limit) {
    const auto until = std::chrono::steady_clock::now() + limit;
    std::array<char, 4096> chunk{};
    while (true) {
        const auto left =
            std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
        pollfd entry{fd_, POLLIN, 0};
        if (left.count() <= 0 || ::poll(&entry, 1, static_cast<int>(left.count())) <= 0) {
            return false;
        }
        if (::recv(fd_, chunk.data(), chunk.size(), 0) <= 0) {
            return true;
        }
    }
}

void ScriptConnection::tunnel_to(std::uint16_t port) {
    const UniqueFd server{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    sockaddr_in place{};
    place.sin_family = AF_INET;
    place.sin_port = htons(port);
    place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(server.get(), reinterpret_cast<sockaddr*>(&place), sizeof(place)) != 0) {
        return;
    }
    std::array<pollfd, 2> ends{pollfd{fd_, POLLIN, 0}, pollfd{server.get(), POLLIN, 0}};
    while (::poll(ends.data(), ends.size(), -1) > 0) {
        if ((ends[0].revents != 0 && !pass_on(fd_, server.get())) ||
            (ends[1].revents != 0 && !pass_on(server.get(), fd_))) {
            return;
        }
    }
}

void ScriptConnection::reset() {
    const linger no_wait{1, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &no_wait, sizeof(no_wait));
}

void ScriptConnection::hang_up() {
    ::shutdown(fd_, SHUT_RDWR);
}

HttpScriptServer::HttpScriptServer(Script script, const std::string& address, std::uint16_t port)
    : script_(std::move(script)),
      listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in place{};
    place.sin_family = AF_INET;
    place.sin_port = htons(port);
    ::inet_pton(AF_INET, address.c_str(), &place.sin_addr);
    auto* raw = reinterpret_cast<sockaddr*>(&place);
    socklen_t length = sizeof(place);
    const int yes = 1;
    ::setsockopt(listener_.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    if (::bind(listener_.get(), raw, length) != 0 || ::listen(listener_.get(), 256) != 0) {
        return;
    }
    ::getsockname(listener_.get(), raw, &length);
    port_ = ntohs(place.sin_port);
    acceptor_ = std::thread{[this] { accept_loop(); }};
}

HttpScriptServer::~HttpScriptServer() {
    stopping_ = true;
    if (!listening()) {
        return;
    }
    ::shutdown(listener_.get(), SHUT_RDWR);
    acceptor_.join();
    std::list<Session>* all = nullptr;  // constant from here on: no more accepts
    {
        auto sessions = sessions_.lock();
        for (Session& session : *sessions) {
            ::shutdown(session.fd.get(), SHUT_RDWR);
        }
        all = &*sessions;
    }
    for (Session& session : *all) {
        session.thread.join();
    }
}

std::string HttpScriptServer::url(std::string_view path) const {
    return fmt::format("http://127.0.0.1:{}{}", port_, path);
}

void HttpScriptServer::accept_loop() {
    while (!stopping_) {
        UniqueFd fd{::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC)};
        if (!fd.valid()) {
            continue;
        }
        const int yes = 1;
        ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
        ++connection_count_;
        auto sessions = sessions_.lock();
        Session& session = sessions->emplace_back();
        session.fd = std::move(fd);
        session.thread = std::thread{[this, raw = session.fd.get(), &session] {
            ScriptConnection connection{raw};
            script_(connection);
            // Closing twice, or while the destructor shuts down, could close another file: check under
            // the lock.
            auto locked = sessions_.lock();
            if (!stopping_) {
                session.fd.reset();
            }
        }};
    }
}

HttpScriptServer::Script answering(
    std::function<void(const ScriptRequest&, ScriptConnection&)> answer) {
    return [answer = std::move(answer)](ScriptConnection& connection) {
        while (const auto request = connection.read_request()) {
            answer(*request, connection);
        }
    };
}

HttpScriptServer::Script dies_on_second_request(std::atomic<int>& requests) {
    return [&requests](ScriptConnection& to) {
        while (to.read_request()) {
            if (++requests == 2) {
                return;
            }
            to.reply(200, "ok");
        }
    };
}

}  // namespace stoker::test
