#include "common/http/http_session.h"

#include <exception>
#include <memory>
#include <optional>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/string.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <fmt/core.h>

#include "common/base/guarded.h"
#include "common/log/log.h"

namespace stoker::http {

namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace wire = boost::beast::http;
using RequestParser = wire::request_parser<wire::string_body>;

constexpr std::size_t kReadBytes = 64 * 1024;
// After a refusal, the rest of the request is read and dropped for this time: closing with unread
// data in the socket would send a reset that can overtake the response.
constexpr Duration kLingerMax = std::chrono::seconds{1};
constexpr std::size_t kLingerBytesMax = 1024 * 1024;

// Marks the connection as idle between requests during the mark's lifetime.
class IdleMark {
public:
    IdleMark(SessionHost& host, HttpConnection& connection)
        : host_(host),
          connection_(connection) {
        host_.idle.insert(&connection_);
    }

    ~IdleMark() { host_.idle.erase(&connection_); }

    IdleMark(const IdleMark&) = delete;
    IdleMark& operator=(const IdleMark&) = delete;

private:
    SessionHost& host_;
    HttpConnection& connection_;
};

// Marks the connection as waiting for a whole request during the mark's lifetime.
class WaitMark {
public:
    WaitMark(SessionHost& host, HttpConnection& connection)
        : host_(host),
          number_(host.waits++) {
        host_.waiting.emplace(number_, &connection);
    }

    ~WaitMark() { host_.waiting.erase(number_); }

    WaitMark(const WaitMark&) = delete;
    WaitMark& operator=(const WaitMark&) = delete;

private:
    SessionHost& host_;
    std::uint64_t number_;
};

std::string_view address_of(const HttpConnection& connection) {
    const std::string_view peer = connection.peer();
    return peer.substr(0, peer.rfind(':'));
}

ServerRequest to_request(wire::request<wire::string_body> message, const std::string& peer) {
    ServerRequest request;
    const bool head = message.method() == wire::verb::head;
    request.method = head ? "GET" : std::string{message.method_string()};
    request.target = std::string{message.target()};
    for (const auto& field : message) {
        request.headers.push_back({std::string{field.name_string()}, std::string{field.value()}});
    }
    request.body = std::move(message.body());
    request.peer = peer;
    return request;
}

// A response that another thread may provide. wait() runs on the server's thread.
class PendingAnswer : public std::enable_shared_from_this<PendingAnswer> {
public:
    explicit PendingAnswer(const asio::any_io_executor& executor)
        : ready_(executor, asio::steady_timer::time_point::max()) {}

    void set(ServerResponse response) {
        {
            auto kept = response_.lock();
            if (*kept) {
                return;
            }
            *kept = std::move(response);
        }
        // Runs on the server's thread as wait() does, so wait() is either suspended, or will see
        // the response and not suspend.
        asio::post(ready_.get_executor(), [self = shared_from_this()] { self->ready_.cancel(); });
    }

    asio::awaitable<void> wait() {
        if (!response_.lock()->has_value()) {
            AsioError ignored;
            co_await ready_.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
        }
    }

    ServerResponse take() { return *std::move(*response_.lock()); }

private:
    asio::steady_timer ready_;
    Guarded<std::optional<ServerResponse>> response_;
};

void ask(
    const SessionHost& host,
    const ServerRequest& request,
    const std::shared_ptr<PendingAnswer>& pending) {
    try {
        host.handler(request, [weak = std::weak_ptr{pending}](ServerResponse response) {
            if (const auto waiting = weak.lock()) {
                waiting->set(std::move(response));
            }
        });
    } catch (const std::exception& caught) {
        log::error("http handler threw", {{"path", request.path()}, {"error", caught.what()}});
        pending->set({500, "text/plain; charset=utf-8", "internal error\n", {}});
    }
}

std::string head_text(const ServerResponse& response, bool keep_alive) {
    const auto status = static_cast<wire::status>(response.status);
    std::string head = fmt::format(
        "HTTP/1.1 {} {}\r\nContent-Type: {}\r\n",
        response.status,
        std::string{wire::obsolete_reason(status)},
        response.content_type);
    // 204 and 304 have no body and must not have Content-Length (RFC 9110, 8.6).
    if (response.status != 204 && response.status != 304) {
        head += fmt::format("Content-Length: {}\r\n", response.body.size());
    }
    if (!keep_alive) {
        head += "Connection: close\r\n";
    }
    for (const Header& header : response.headers) {
        head += fmt::format("{}: {}\r\n", header.name, header.value);
    }
    return head + "\r\n";
}

// The response to a request that cannot be parsed; nullopt if the peer has gone or is too slow.
std::optional<ServerResponse> refusal_of(const AsioError& error) {
    const auto refuse = [](int status, const char* words) {
        return ServerResponse{status, "text/plain; charset=utf-8", words, {}};
    };
    if (error == wire::error::header_limit) {
        return refuse(431, "request header too large\n");
    }
    if (error == wire::error::body_limit) {
        return refuse(413, "request body too large\n");
    }
    const bool malformed =
        error.category() == make_error_code(wire::error::bad_method).category() &&
        error != wire::error::end_of_stream && error != wire::error::partial_message;
    if (malformed) {
        return refuse(400, "bad request\n");
    }
    return std::nullopt;
}

// Keep each co_await in its own statement: GCC 12 miscompiles `co_return co_await x && y`.
class Session {
public:
    Session(SessionHost& host, HttpConnection& connection)
        : host_(host),
          connection_(connection) {}

    asio::awaitable<void> run() {
        bool open = true;
        while (open && !host_.draining) {
            waiting_.emplace(host_, connection_);
            open = co_await wait_for_request();
            if (open) {
                open = co_await serve_one();
            }
        }
    }

private:
    asio::awaitable<bool> wait_for_request() {
        if (buffer_.size() > 0) {
            co_return true;  // pipelined behind the last one
        }
        const IdleMark idle{host_, connection_};
        const ServerOptions& options = host_.options;
        connection_.set_deadline(is_new_ ? options.header_timeout : options.idle_timeout);
        AsioError error;
        co_await read_more(error);
        co_return !error;
    }

    asio::awaitable<void> read_more(AsioError& error) {
        const auto room = buffer_.prepare(kReadBytes);
        const std::size_t count = co_await connection_.read_some(room, error);
        buffer_.commit(count);
    }

    // Returns false if the connection must be closed.
    asio::awaitable<bool> serve_one() {
        RequestParser parser;
        parser.eager(true);
        parser.header_limit(static_cast<std::uint32_t>(header_max()));
        parser.body_limit(host_.options.body_bytes_max.count());
        AsioError error;
        connection_.set_deadline(host_.options.header_timeout);
        co_await read_request(parser, error);
        if (error) {
            co_await refuse(error);
            co_return false;
        }
        const bool keep = co_await answer(parser.release());
        co_return keep;
    }

    asio::awaitable<void> read_request(RequestParser& parser, AsioError& error) {
        bool header_seen = false;
        while (true) {
            const std::size_t used = parser.put(buffer_.data(), error);
            buffer_.consume(used);
            if (error == wire::error::need_more) {
                error = {};
            }
            if (error || parser.is_done()) {
                co_return;
            }
            if (parser.is_header_done() && !header_seen) {
                header_seen = true;
                co_await begin_body(parser, error);
            }
            // The parser limits header and body, but neither the line before a chunk nor the
            // trailer lines: it leaves them in buffer_ until they are complete.
            if (!error && buffer_.size() > header_max()) {
                error = wire::error::header_limit;
            }
            if (!error) {
                co_await read_more(error);
            }
            if (error) {
                co_return;
            }
        }
    }

    [[nodiscard]] std::uint64_t header_max() const {
        return host_.options.header_bytes_max.count();
    }

    asio::awaitable<void> begin_body(RequestParser& parser, AsioError& error) {
        connection_.set_deadline(host_.options.body_timeout);
        if (beast::iequals(parser.get()[wire::field::expect], "100-continue")) {
            constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
            co_await connection_.write(
                {asio::buffer(kContinue.data(), kContinue.size()), asio::const_buffer{}}, error);
        }
    }

    asio::awaitable<bool> answer(wire::request<wire::string_body> request) {
        ++host_.counters.requests;
        waiting_.reset();
        is_new_ = false;
        const bool keep = request.keep_alive() && !host_.draining;
        const bool head_only = request.method() == wire::verb::head;
        const auto executor = co_await asio::this_coro::executor;
        const auto pending = std::make_shared<PendingAnswer>(executor);
        connection_.set_deadline(host_.options.answer_timeout);
        ask(host_, to_request(std::move(request), connection_.peer()), pending);
        co_await pending->wait();
        const ServerResponse response = pending->take();
        const bool written = co_await write(response, keep, head_only);
        co_return written&& keep;
    }

    asio::awaitable<void> refuse(AsioError reason) {
        const auto response = refusal_of(reason);
        if (!response) {
            co_return;
        }
        const bool written = co_await write(*response, false, false);
        if (written) {
            co_await linger();
        }
    }

    asio::awaitable<bool> write(const ServerResponse& response, bool keep, bool head_only) {
        connection_.set_deadline(host_.options.write_timeout);
        const std::string head = head_text(response, keep);
        const asio::const_buffer body =
            head_only ? asio::const_buffer{} : asio::buffer(response.body);
        AsioError error;
        co_await connection_.write({asio::buffer(head), body}, error);
        co_return !error;
    }

    asio::awaitable<void> linger() {
        connection_.shut_down_sending();
        connection_.set_deadline(kLingerMax);
        AsioError error;
        for (std::size_t total = 0; !error && total < kLingerBytesMax;) {
            const std::size_t count = co_await connection_.discard_some(error);
            total += count;
        }
    }

    SessionHost& host_;
    HttpConnection& connection_;
    beast::flat_buffer buffer_;
    std::optional<WaitMark> waiting_;
    bool is_new_ = true;  // no request has come yet
};

}  // namespace

std::string_view ServerRequest::path() const {
    return std::string_view{target}.substr(0, target.find('?'));
}

bool end_a_waiting_one(SessionHost& host) {
    std::map<std::string_view, std::size_t> counts;
    for (const auto& [number, connection] : host.waiting) {
        ++counts[address_of(*connection)];
    }
    auto worst = host.waiting.begin();
    for (auto at = host.waiting.begin(); at != host.waiting.end(); ++at) {
        if (counts[address_of(*at->second)] > counts[address_of(*worst->second)]) {
            worst = at;
        }
    }
    if (worst == host.waiting.end()) {
        return false;
    }
    worst->second->close();
    host.waiting.erase(worst);
    return true;
}

asio::awaitable<void> serve_connection(
    SessionHost& host, std::shared_ptr<HttpConnection> connection) {
    AsioError error;
    connection->set_deadline(host.options.handshake_timeout);
    {
        const WaitMark waiting{host, *connection};
        co_await connection->open(error);
    }
    if (!error) {
        Session session{host, *connection};
        co_await session.run();
        connection->set_deadline(kLingerMax);
        co_await connection->say_goodbye();
    }
    connection->close();
}

}  // namespace stoker::http
