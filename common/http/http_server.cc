#include "common/http/http_server.h"

#include <csignal>
#include <memory>
#include <thread>
#include <utility>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <fmt/core.h>
#include <pthread.h>

#include "common/base/accept_backoff.h"
#include "common/base/clock.h"
#include "common/base/guarded.h"
#include "common/http/http_session.h"
#include "common/log/log.h"

namespace stoker::http {

namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using TlsContext = std::shared_ptr<asio::ssl::context>;

Result<TlsContext> make_tls_context(const std::string& cert_pem, const std::string& key_pem) {
    const auto context = std::make_shared<asio::ssl::context>(asio::ssl::context::tls_server);
    error_code error;
    context->set_options(
        asio::ssl::context::default_workarounds | asio::ssl::context::no_tlsv1 |
        asio::ssl::context::no_tlsv1_1);
    context->use_certificate_chain(asio::buffer(cert_pem), error);
    if (error) {
        return fail(
            ErrorCode::kInvalidArgument, fmt::format("TLS certificate: {}", error.message()));
    }
    context->use_private_key(asio::buffer(key_pem), asio::ssl::context::pem, error);
    if (error) {
        return fail(ErrorCode::kInvalidArgument, fmt::format("TLS key: {}", error.message()));
    }
    if (SSL_CTX_check_private_key(context->native_handle()) != 1) {
        return fail(ErrorCode::kInvalidArgument, "the TLS key belongs to another certificate");
    }
    return context;
}

Status listen_on(tcp::acceptor& acceptor, const tcp::endpoint& endpoint) {
    error_code error;
    acceptor.close(error);
    acceptor.open(endpoint.protocol(), error);
    if (!error) {
        acceptor.set_option(tcp::acceptor::reuse_address{true}, error);
    }
    if (!error && endpoint.address().is_v6()) {
        acceptor.set_option(asio::ip::v6_only{false}, error);
    }
    if (!error) {
        acceptor.bind(endpoint, error);
    }
    if (!error) {
        acceptor.listen(asio::socket_base::max_listen_connections, error);
    }
    if (error) {
        return fail(
            ErrorCode::kUnavailable,
            fmt::format(
                "cannot listen on {} port {}: {}",
                endpoint.address().to_string(),
                endpoint.port(),
                error.message()));
    }
    return {};
}

}  // namespace

class HttpServer::Impl {
public:
    Impl(ServerOptions options, LaterHandler handler) {
        host_.options = std::move(options);
        host_.handler = std::move(handler);
    }

    ~Impl() {
        if (thread_.joinable()) {
            asio::post(io_, [this] { begin_drain(); });
            thread_.join();
        }
    }

    Impl(const Impl&) = delete;
    Impl& operator=(const Impl&) = delete;

    Status open() {
        const ServerOptions& options = host_.options;
        if (options.cert_pem.empty() != options.key_pem.empty()) {
            return fail(ErrorCode::kInvalidArgument, "a TLS certificate needs its key");
        }
        if (!options.cert_pem.empty()) {
            STOKER_TRY(*tls_.lock(), make_tls_context(options.cert_pem, options.key_pem));
        }
        error_code error;
        const auto address = asio::ip::make_address(options.address, error);
        if (error) {
            return fail(
                ErrorCode::kInvalidArgument,
                fmt::format("'{}' is not an IP address to listen on", options.address));
        }
        Status listening = listen_on(acceptor_, {address, options.port});
        if (!listening && address.is_v6() && address.is_unspecified()) {
            listening = listen_on(acceptor_, {asio::ip::address_v4::any(), options.port});
        }
        STOKER_TRY_VOID(std::move(listening));
        port_ = acceptor_.local_endpoint(error).port();
        asio::co_spawn(io_, accept_loop(), asio::detached);
        thread_ = std::thread{[this] { run(); }};
        return {};
    }

    Status replace_certificate(const std::string& cert_pem, const std::string& key_pem) {
        STOKER_TRY(TlsContext fresh, make_tls_context(cert_pem, key_pem));
        auto current = tls_.lock();
        if (!*current) {
            return fail(ErrorCode::kInvalidArgument, "the server was started without TLS");
        }
        *current = std::move(fresh);
        return {};
    }

    [[nodiscard]] std::uint16_t port() const { return port_; }

    [[nodiscard]] ServerStats stats() const {
        const ServerCounters& counters = host_.counters;
        return {counters.accepted, counters.refused, counters.open, counters.requests};
    }

private:
    void run() {
        sigset_t all;
        sigfillset(&all);
        pthread_sigmask(SIG_BLOCK, &all, nullptr);
        pthread_setname_np(pthread_self(), "http-server");
        io_.run();
    }

    asio::awaitable<void> accept_loop() {
        while (acceptor_.is_open()) {
            error_code error;
            tcp::socket socket{io_};
            co_await acceptor_.async_accept(
                socket, asio::redirect_error(asio::use_awaitable, error));
            if (error && acceptor_.is_open()) {
                pause_.expires_after(pause_after(error));
                co_await pause_.async_wait(asio::redirect_error(asio::use_awaitable, error));
            } else if (!error) {
                backoff_.accepted();
                admit(std::move(socket));
            }
        }
    }

    Duration pause_after(const error_code& error) {
        const auto advice = backoff_.failed(SystemClock{}.now());
        if (advice.log) {
            log::warning(
                "http server cannot accept connections for now",
                {{"port", port_},
                 {"error", error.message()},
                 {"failuresNotLogged", advice.silent}});
        }
        return advice.pause;
    }

    void admit(tcp::socket socket) {
        ++host_.counters.accepted;
        if (host_.counters.open >= host_.options.connections_max) {
            ++host_.counters.refused;
            if (!end_a_waiting_one(host_)) {
                return;  // closes the connection
            }
        }
        ++host_.counters.open;
        error_code ignored;
        socket.set_option(tcp::no_delay{true}, ignored);
        asio::co_spawn(
            io_,
            serve_connection(host_, make_connection(std::move(socket), *tls_.lock())),
            [this](const std::exception_ptr& /*unused*/) { on_connection_end(); });
    }

    void on_connection_end() {
        --host_.counters.open;
        if (host_.draining && host_.counters.open == 0) {
            drain_.cancel();
        }
    }

    // The I/O thread returns once no work is left, or when the drain timer stops it.
    void begin_drain() {
        host_.draining = true;
        error_code ignored;
        acceptor_.close(ignored);
        pause_.cancel();
        for (HttpConnection* connection : host_.idle) {
            connection->close();
        }
        if (host_.counters.open == 0) {
            return;
        }
        drain_.expires_after(host_.options.drain_timeout);
        drain_.async_wait([this](const error_code& error) {
            if (!error) {
                io_.stop();
            }
        });
    }

    // Members are destroyed last to first: the sessions inside io_ go before the objects that they
    // use.
    SessionHost host_;
    Guarded<TlsContext> tls_;
    std::uint16_t port_ = 0;
    asio::io_context io_{1};
    tcp::acceptor acceptor_{io_};
    AcceptBackoff backoff_;
    asio::steady_timer pause_{io_};
    asio::steady_timer drain_{io_};
    std::thread thread_;
};

HttpServer::HttpServer(std::unique_ptr<Impl> impl)
    : impl_(std::move(impl)) {}

HttpServer::~HttpServer() = default;

Result<std::unique_ptr<HttpServer>> HttpServer::start(ServerOptions options, Handler handler) {
    return start(
        std::move(options),
        LaterHandler{
            [handler = std::move(handler)](const ServerRequest& request, const Reply& reply) {
                reply(handler(request));
            }});
}

Result<std::unique_ptr<HttpServer>> HttpServer::start(ServerOptions options, LaterHandler handler) {
    auto impl = std::make_unique<Impl>(std::move(options), std::move(handler));
    STOKER_TRY_VOID(impl->open());
    return std::unique_ptr<HttpServer>{new HttpServer{std::move(impl)}};
}

std::uint16_t HttpServer::port() const {
    return impl_->port();
}

Status HttpServer::replace_certificate(const std::string& cert_pem, const std::string& key_pem) {
    return impl_->replace_certificate(cert_pem, key_pem);
}

ServerStats HttpServer::stats() const {
    return impl_->stats();
}

}  // namespace stoker::http
