// stoker-bench-s3-endpoint PORT CONNECTIONS REQUESTS
//
// Reads objects over HTTP/1.1 from 127.0.0.1:PORT on CONNECTIONS kept connections, one request in
// flight on each. REQUESTS is a file with one request head (with its final empty line) for each
// sample. Prints `ready`; then for each line `FIRST_PASS PASSES` on stdin reads that many passes in
// random order and prints `SECONDS SUM`. SUM of pass 0 covers all bytes; other passes do not touch
// the bytes that they receive, so that the client costs as little as possible.
//
// bench/s3_endpoint.py runs it against stoker-s3, nginx and versitygw.
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <arpa/inet.h>
#include <fmt/core.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "bench/workload.h"
#include "common/base/unique_fd.h"

namespace stoker::bench {

namespace {

constexpr std::size_t kBufferBytes = std::size_t{1} << 20;  // above every object of the workload
constexpr std::string_view kEndOfHead = "\r\n\r\n";

[[noreturn]] void fail(const std::string& message) {
    fmt::print(stderr, "stoker-bench-s3-endpoint: {}\n", message);
    std::exit(1);
}

// Length of the body that the answer's head announces. Ends the program unless the status is 200.
std::size_t body_bytes(std::string_view head) {
    if (!head.starts_with("HTTP/1.1 200 ")) {
        fail(fmt::format("unexpected answer: {}", head));
    }
    for (const std::string_view name : {"\r\nContent-Length: ", "\r\ncontent-length: "}) {
        const auto at = head.find(name);
        if (at != std::string_view::npos) {
            std::size_t bytes = 0;
            std::from_chars(head.data() + at + name.size(), head.data() + head.size(), bytes);
            return bytes;
        }
    }
    fail(fmt::format("answer without Content-Length: {}", head));
}

// One kept connection with at most one request in flight.
class Connection {
public:
    explicit Connection(std::uint16_t port)
        : socket_(::socket(AF_INET, SOCK_STREAM, 0)),
          buffer_(kBufferBytes) {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_port = htons(port);
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        const int on = 1;
        ::setsockopt(socket_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
        if (::connect(
                socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
            fail(fmt::format("cannot connect to port {}", port));
        }
    }

    [[nodiscard]] int fd() const { return socket_.get(); }

    void send(std::string_view head) {
        received_ = 0;
        answer_bytes_.reset();
        if (::send(fd(), head.data(), head.size(), MSG_NOSIGNAL) !=
            static_cast<ssize_t>(head.size())) {
            fail("cannot send a request");
        }
    }

    // Takes the bytes that have arrived. Returns the body once the answer is complete.
    std::optional<std::span<const std::byte>> receive() {
        const ssize_t got =
            ::recv(fd(), buffer_.data() + received_, buffer_.size() - received_, MSG_DONTWAIT);
        if (got <= 0) {
            fail("the server closed a connection");
        }
        received_ += static_cast<std::size_t>(got);
        if (!answer_bytes_) {
            const std::string_view text{buffer_.data(), received_};
            const auto end = text.find(kEndOfHead);
            if (end == std::string_view::npos) {
                return std::nullopt;
            }
            head_bytes_ = end + kEndOfHead.size();
            answer_bytes_ = head_bytes_ + body_bytes(text.substr(0, end + 2));
        }
        if (received_ < *answer_bytes_) {
            return std::nullopt;
        }
        return std::as_bytes(std::span{buffer_}).subspan(head_bytes_, *answer_bytes_ - head_bytes_);
    }

private:
    UniqueFd socket_;
    std::vector<char> buffer_;
    std::size_t received_ = 0;
    std::size_t head_bytes_ = 0;
    std::optional<std::size_t> answer_bytes_;  // head and body; nullopt: the head is incomplete
};

class Client {
public:
    Client(std::uint16_t port, std::size_t connections, std::vector<std::string> requests)
        : requests_(std::move(requests)),
          epoll_(::epoll_create1(0)) {
        for (std::size_t i = 0; i < connections; ++i) {
            connections_.push_back(std::make_unique<Connection>(port));
            epoll_event event{};
            event.events = EPOLLIN;
            event.data.ptr = connections_.back().get();
            ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, connections_.back()->fd(), &event);
        }
    }

    // Reads every object once. Returns the sum of all bytes in pass 0, else 0.
    std::uint64_t read_pass(std::uint64_t pass) {
        const auto order = pass_order(pass, requests_.size());
        std::size_t next = 0;
        std::size_t pending = order.size();
        std::uint64_t sum = 0;
        for (const auto& connection : connections_) {
            connection->send(requests_[order[next++]]);
        }
        while (pending > 0) {
            for (Connection* connection : readable()) {
                const auto body = connection->receive();
                if (!body) {
                    continue;
                }
                sum += pass == 0 ? touch(*body) : 0;
                --pending;
                if (next < order.size()) {
                    connection->send(requests_[order[next++]]);
                }
            }
        }
        return sum;
    }

private:
    std::vector<Connection*> readable() {
        std::vector<epoll_event> events(connections_.size());
        const int count =
            ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), 10'000);
        if (count <= 0) {
            fail("no answer within 10 s");
        }
        std::vector<Connection*> out;
        for (int i = 0; i < count; ++i) {
            out.push_back(static_cast<Connection*>(events[static_cast<std::size_t>(i)].data.ptr));
        }
        return out;
    }

    std::vector<std::string> requests_;
    UniqueFd epoll_;
    std::vector<std::unique_ptr<Connection>> connections_;
};

std::vector<std::string> read_requests(const std::string& path) {
    std::ifstream file{path, std::ios::binary};
    std::string text(std::filesystem::file_size(path), '\0');
    file.read(text.data(), static_cast<std::streamsize>(text.size()));
    std::vector<std::string> out;
    for (std::size_t at = 0; at < text.size();) {
        const auto end = text.find(kEndOfHead, at);
        if (end == std::string::npos) {
            fail(fmt::format("{} does not end with an empty line", path));
        }
        out.push_back(text.substr(at, end + kEndOfHead.size() - at));
        at = end + kEndOfHead.size();
    }
    return out;
}

void serve(Client& client) {
    fmt::print("ready\n");
    std::fflush(stdout);
    std::uint64_t first = 0;
    std::uint64_t passes = 0;
    while (std::cin >> first >> passes) {
        const double begin = seconds();
        std::uint64_t sum = 0;
        for (std::uint64_t pass = first; pass < first + passes; ++pass) {
            sum += client.read_pass(pass);
        }
        fmt::print("{:.9f} {}\n", seconds() - begin, sum);
        std::fflush(stdout);
    }
}

}  // namespace

}  // namespace stoker::bench

int main(int argc, char** argv) {
    const std::vector<std::string> arguments{argv + 1, argv + argc};
    if (arguments.size() != 3) {
        stoker::bench::fail("usage: stoker-bench-s3-endpoint PORT CONNECTIONS REQUESTS");
    }
    auto requests = stoker::bench::read_requests(arguments[2]);
    const std::size_t connections = std::stoul(arguments[1]);
    if (connections == 0 || connections > requests.size()) {
        stoker::bench::fail("CONNECTIONS must be between 1 and the number of requests");
    }
    stoker::bench::Client client{
        static_cast<std::uint16_t>(std::stoul(arguments[0])), connections, std::move(requests)};
    stoker::bench::serve(client);
    return 0;
}
