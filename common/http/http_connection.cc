#include "common/http/http_connection.h"

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <fmt/core.h>

namespace stoker::http {

namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

auto by_error(AsioError& error) {
    return asio::redirect_error(asio::use_awaitable, error);
}

std::string describe_peer(const tcp::socket& socket) {
    AsioError error;
    const auto peer = socket.remote_endpoint(error);
    if (error) {
        return "unknown";
    }
    auto address = peer.address();
    if (address.is_v6() && address.to_v6().is_v4_mapped()) {
        address = asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6());
    }
    return address.is_v6() ? fmt::format("[{}]:{}", address.to_string(), peer.port())
                           : fmt::format("{}:{}", address.to_string(), peer.port());
}

class PlainConnection final : public HttpConnection {
public:
    using HttpConnection::HttpConnection;

    asio::awaitable<void> open(AsioError& error) override {
        error = {};
        co_return;
    }

    asio::awaitable<std::size_t> read_some(asio::mutable_buffer into, AsioError& error) override {
        const std::size_t count = co_await socket().async_read_some(into, by_error(error));
        co_return count;
    }

    asio::awaitable<void> write(std::array<asio::const_buffer, 2> data, AsioError& error) override {
        co_await asio::async_write(socket(), data, by_error(error));
    }

    asio::awaitable<void> say_goodbye() override { co_return; }
};

class TlsConnection final : public HttpConnection {
public:
    TlsConnection(tcp::socket plain, std::shared_ptr<asio::ssl::context> context)
        : HttpConnection(std::move(plain)),
          context_(std::move(context)),
          tls_(socket(), *context_) {}

    asio::awaitable<void> open(AsioError& error) override {
        co_await tls_.async_handshake(asio::ssl::stream_base::server, by_error(error));
    }

    asio::awaitable<std::size_t> read_some(asio::mutable_buffer into, AsioError& error) override {
        const std::size_t count = co_await tls_.async_read_some(into, by_error(error));
        co_return count;
    }

    asio::awaitable<void> write(std::array<asio::const_buffer, 2> data, AsioError& error) override {
        co_await asio::async_write(tls_, data, by_error(error));
    }

    asio::awaitable<void> say_goodbye() override {
        AsioError ignored;
        co_await tls_.async_shutdown(by_error(ignored));
    }

private:
    std::shared_ptr<asio::ssl::context> context_;
    asio::ssl::stream<tcp::socket&> tls_;
};

}  // namespace

HttpConnection::HttpConnection(tcp::socket socket)
    : socket_(std::move(socket)),
      deadline_(socket_.get_executor()),
      peer_(describe_peer(socket_)) {}

void HttpConnection::set_deadline(Duration duration) {
    deadline_.expires_after(std::chrono::duration_cast<asio::steady_timer::duration>(duration));
    deadline_.async_wait([weak = weak_from_this()](const AsioError& error) {
        const auto self = weak.lock();
        // set_deadline() may move the deadline when this handler is queued already; then `error` is
        // not set, so check the clock.
        if (!error && self && self->deadline_.expiry() <= asio::steady_timer::clock_type::now()) {
            self->close();
        }
    });
}

void HttpConnection::close() {
    AsioError ignored;
    socket_.close(ignored);
}

void HttpConnection::shut_down_sending() {
    AsioError ignored;
    socket_.shutdown(tcp::socket::shutdown_send, ignored);
}

asio::awaitable<std::size_t> HttpConnection::discard_some(AsioError& error) {
    std::array<char, 16 * 1024> sink{};
    const std::size_t count = co_await socket_.async_read_some(asio::buffer(sink), by_error(error));
    co_return count;
}

std::shared_ptr<HttpConnection> make_connection(
    tcp::socket socket, std::shared_ptr<asio::ssl::context> tls) {
    if (tls) {
        return std::make_shared<TlsConnection>(std::move(socket), std::move(tls));
    }
    return std::make_shared<PlainConnection>(std::move(socket));
}

}  // namespace stoker::http
