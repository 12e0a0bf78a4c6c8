#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>  // awaitable.hpp of Boost 1.74 forgets it

#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "common/base/clock.h"

// The bytes of one accepted connection, plain or TLS, with a deadline over whatever runs. Private
// to common/http; only the server's thread uses it. Virtual rather than a template: composed
// operations over two stream types took GCC 12 ten minutes to compile with sanitizers.
namespace stoker::http {

using AsioError = boost::system::error_code;

class HttpConnection : public std::enable_shared_from_this<HttpConnection> {
public:
    explicit HttpConnection(boost::asio::ip::tcp::socket socket);
    virtual ~HttpConnection() = default;
    HttpConnection(const HttpConnection&) = delete;
    HttpConnection& operator=(const HttpConnection&) = delete;

    // From now on the connection is closed unless another deadline is set within `duration`; what
    // runs then fails.
    void set_deadline(Duration duration);

    // Closes it at once; what runs fails.
    void close();

    // No more bytes from us; the peer may still send.
    void shut_down_sending();

    // "127.0.0.1:34512", "[::1]:34512".
    [[nodiscard]] const std::string& peer() const { return peer_; }

    // TLS: the handshake. Plain: nothing.
    virtual boost::asio::awaitable<void> open(AsioError& error) = 0;
    virtual boost::asio::awaitable<std::size_t> read_some(
        boost::asio::mutable_buffer into, AsioError& error) = 0;
    // All of both buffers.
    virtual boost::asio::awaitable<void> write(
        std::array<boost::asio::const_buffer, 2> data, AsioError& error) = 0;
    // Says goodbye as TLS wants it. Plain: nothing.
    virtual boost::asio::awaitable<void> say_goodbye() = 0;

    // Reads and drops bytes below TLS.
    boost::asio::awaitable<std::size_t> discard_some(AsioError& error);

protected:
    boost::asio::ip::tcp::socket& socket() { return socket_; }

private:
    boost::asio::ip::tcp::socket socket_;
    boost::asio::steady_timer deadline_;
    std::string peer_;
};

// `tls` null: plain.
std::shared_ptr<HttpConnection> make_connection(
    boost::asio::ip::tcp::socket socket, std::shared_ptr<boost::asio::ssl::context> tls);

}  // namespace stoker::http
