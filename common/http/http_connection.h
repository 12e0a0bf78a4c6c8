#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>  // awaitable.hpp of Boost 1.74 does not include it

#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "common/base/clock.h"

// One accepted connection, plain or TLS, with a deadline for the current operation. Private to
// common/http; only the server's thread uses it. Virtual instead of a template: composed operations
// over two stream types took GCC 12 ten minutes to compile with sanitizers.
namespace stoker::http {

using AsioError = boost::system::error_code;

class HttpConnection : public std::enable_shared_from_this<HttpConnection> {
public:
    explicit HttpConnection(boost::asio::ip::tcp::socket socket);
    virtual ~HttpConnection() = default;
    HttpConnection(const HttpConnection&) = delete;
    HttpConnection& operator=(const HttpConnection&) = delete;

    // Closes the connection after `duration` unless a new deadline is set; the current operation
    // then fails.
    void set_deadline(Duration duration);

    // Closes the connection at once; the current operation fails.
    void close();

    // Sends the end of our side of the connection; the peer may still send.
    void shut_down_sending();

    // Address of the peer: "127.0.0.1:34512", "[::1]:34512".
    [[nodiscard]] const std::string& peer() const { return peer_; }

    // Runs the TLS handshake; does nothing for plain HTTP.
    virtual boost::asio::awaitable<void> open(AsioError& error) = 0;
    virtual boost::asio::awaitable<std::size_t> read_some(
        boost::asio::mutable_buffer into, AsioError& error) = 0;
    // Writes both buffers completely.
    virtual boost::asio::awaitable<void> write(
        std::array<boost::asio::const_buffer, 2> data, AsioError& error) = 0;
    // Sends the TLS close notification; does nothing for plain HTTP.
    virtual boost::asio::awaitable<void> say_goodbye() = 0;

    // Reads and discards raw bytes below TLS.
    boost::asio::awaitable<std::size_t> discard_some(AsioError& error);

protected:
    boost::asio::ip::tcp::socket& socket() { return socket_; }

private:
    boost::asio::ip::tcp::socket socket_;
    boost::asio::steady_timer deadline_;
    std::string peer_;
};

// Creates a connection; a null `tls` makes it a plain one.
std::shared_ptr<HttpConnection> make_connection(
    boost::asio::ip::tcp::socket socket, std::shared_ptr<boost::asio::ssl::context> tls);

}  // namespace stoker::http
