// stoker-pacer: makes a fast local S3 server as slow as a remote one, and logs its requests.
//
// A TCP proxy that understands just enough HTTP/1.1 (no pipelining) to see where a request begins:
//   - the first byte of every response is held back for --first-byte-ms,
//   - all responses together pass through one token bucket of --bytes-per-second (0: unlimited),
//   - with --log, each finished request is one line:
//     UNIX_MS METHOD TARGET STATUS BODY_BYTES DURATION_MS
// Requests are not paced. One thread; ends with status 0 on SIGTERM and SIGINT.

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cinttypes>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <boost/asio.hpp>

namespace stoker::e2e {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using Clock = std::chrono::steady_clock;
using boost::system::error_code;

constexpr std::size_t kChunkBytes = 65536;
constexpr std::chrono::milliseconds kBurst{5};  // what an idle link may send at once, as time

struct Settings {
    tcp::endpoint listen;
    tcp::endpoint upstream;
    std::chrono::milliseconds first_byte{20};
    std::uint64_t bytes_per_second = 200'000'000;
    std::string log_path;  // empty: no log; "-": standard output
};

// The link shared by all connections. reserve() queues bytes and returns when the last one passes.
class Link {
public:
    explicit Link(std::uint64_t bytes_per_second)
        : bytes_per_second_(bytes_per_second) {}

    Clock::time_point reserve(std::size_t bytes, Clock::time_point now) {
        if (bytes_per_second_ == 0)
            return now;
        const std::chrono::duration<double> cost(
            static_cast<double>(bytes) / static_cast<double>(bytes_per_second_));
        free_at_ =
            std::max(free_at_, now - kBurst) + std::chrono::duration_cast<Clock::duration>(cost);
        return free_at_;
    }

private:
    std::uint64_t bytes_per_second_;
    Clock::time_point free_at_{};
};

template <class Number>
std::optional<Number> to_number(std::string_view text) {
    Number value{};
    const auto end = std::from_chars(text.data(), text.data() + text.size(), value);
    if (end.ec != std::errc{} || end.ptr == text.data())
        return std::nullopt;
    return value;
}

// Parses the requests and answers of one connection as their bytes pass.
class Exchange {
public:
    explicit Exchange(std::FILE* log)
        : log_(log) {}

    void on_client_bytes(std::string_view bytes) {
        if (open_ && !answered_)
            return;  // the rest of a request
        finish();
        const auto line = bytes.substr(0, bytes.find("\r\n"));
        request_ = std::string(line.substr(0, line.rfind(' ')));  // without "HTTP/1.1"
        began_ = Clock::now();
        began_unix_ms_ = std::chrono::duration_cast<std::chrono::milliseconds>(
                             std::chrono::system_clock::now().time_since_epoch())
                             .count();
        open_ = true;
        answered_ = false;
        header_bytes_ = received_ = 0;
        expected_.reset();
    }

    // True if these are the first bytes of an answer.
    bool on_server_bytes(std::string_view bytes) {
        const bool first = open_ && !answered_;
        if (first) {
            status_ =
                to_number<int>(bytes.substr(0, 12).substr(std::min<std::size_t>(9, bytes.size())))
                    .value_or(0);
            answered_ = status_ >= 200;  // 1xx: the request goes on
            read_header(bytes);
        }
        return first;
    }

    void on_delivered(std::size_t bytes) {
        received_ += bytes;
        if (answered_ && expected_ && received_ >= *expected_)
            finish();
    }

    void finish() {
        if (!std::exchange(open_, false) || log_ == nullptr)
            return;
        const auto took =
            std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - began_);
        const std::uint64_t body_bytes = received_ - std::min(received_, header_bytes_);
        std::fprintf(
            log_,
            "%" PRId64 " %s %d %" PRIu64 " %" PRId64 "\n",
            began_unix_ms_,
            request_.c_str(),
            status_,
            body_bytes,
            std::int64_t{took.count()});
        std::fflush(log_);
    }

private:
    void read_header(std::string_view bytes) {
        received_ = 0;
        const auto end = bytes.find("\r\n\r\n");
        if (end == std::string_view::npos)
            return;  // longer than a chunk: finished by the next request
        header_bytes_ = end + 4;
        // If the header's name is spelled differently, the line is logged at the next request.
        constexpr std::string_view kName = "\r\nContent-Length: ";
        const auto at = bytes.substr(0, end).find(kName);
        if (at == std::string_view::npos)
            return;
        const auto length = to_number<std::uint64_t>(bytes.substr(at + kName.size()));
        const bool has_body = request_.rfind("HEAD ", 0) != 0;
        if (length)
            expected_ = header_bytes_ + (has_body ? *length : 0);
    }

    std::FILE* log_;
    std::string request_;
    Clock::time_point began_{};
    std::int64_t began_unix_ms_ = 0;
    int status_ = 0;
    bool open_ = false;
    bool answered_ = false;
    std::uint64_t header_bytes_ = 0;
    std::uint64_t received_ = 0;
    std::optional<std::uint64_t> expected_;
};

// One client connection and its server connection. Its handlers keep it alive; all run on one
// thread.
class Connection : public std::enable_shared_from_this<Connection> {
public:
    Connection(tcp::socket client, const Settings& settings, Link& link, std::FILE* log)
        : client_(std::move(client)),
          server_(client_.get_executor()),
          timer_(client_.get_executor()),
          settings_(settings),
          link_(link),
          exchange_(log) {}

    void start() {
        server_.async_connect(settings_.upstream, [self = shared_from_this()](error_code error) {
            if (error)
                return self->close();  // the client sees a dead server
            self->client_.set_option(tcp::no_delay(true), error);
            self->server_.set_option(tcp::no_delay(true), error);
            self->read_request();
            self->read_response();
        });
    }

private:
    void read_request() {
        client_.async_read_some(
            asio::buffer(request_),
            [self = shared_from_this()](error_code error, std::size_t bytes) {
                if (error)
                    return self->close();
                self->exchange_.on_client_bytes({self->request_.data(), bytes});
                self->write_request(bytes);
            });
    }

    void write_request(std::size_t bytes) {
        asio::async_write(
            server_,
            asio::buffer(request_, bytes),
            [self = shared_from_this()](error_code error, std::size_t) {
                error ? self->close() : self->read_request();
            });
    }

    void read_response() {
        server_.async_read_some(
            asio::buffer(response_),
            [self = shared_from_this()](error_code error, std::size_t bytes) {
                error ? self->close() : self->hold_back(bytes);
            });
    }

    void hold_back(std::size_t bytes) {
        const Clock::time_point now = Clock::now();
        const bool first = exchange_.on_server_bytes({response_.data(), bytes});
        timer_.expires_at(std::max(
            link_.reserve(bytes, now), now + (first ? settings_.first_byte : Clock::duration{})));
        timer_.async_wait([self = shared_from_this(), bytes](error_code error) {
            error ? self->close() : self->write_response(bytes);
        });
    }

    void write_response(std::size_t bytes) {
        asio::async_write(
            client_,
            asio::buffer(response_, bytes),
            [self = shared_from_this(), bytes](error_code error, std::size_t) {
                if (error)
                    return self->close();
                self->exchange_.on_delivered(bytes);
                self->read_response();
            });
    }

    void close() {
        error_code ignored;
        exchange_.finish();
        timer_.cancel();
        client_.close(ignored);
        server_.close(ignored);
    }

    tcp::socket client_;
    tcp::socket server_;
    asio::steady_timer timer_;
    const Settings& settings_;
    Link& link_;
    Exchange exchange_;
    std::array<char, kChunkBytes> request_{};
    std::array<char, kChunkBytes> response_{};
};

class Listener {
public:
    Listener(asio::io_context& context, const Settings& settings, std::FILE* log)
        : acceptor_(context, settings.listen),
          settings_(settings),
          link_(settings.bytes_per_second),
          log_(log) {}

    void accept() {
        acceptor_.async_accept([this](error_code error, tcp::socket client) {
            if (error == asio::error::operation_aborted)
                return;
            if (!error)  // errors: the peer has closed, or too many files are open
                std::make_shared<Connection>(std::move(client), settings_, link_, log_)->start();
            accept();
        });
    }

private:
    tcp::acceptor acceptor_;
    const Settings& settings_;
    Link link_;
    std::FILE* log_;
};

std::optional<tcp::endpoint> to_endpoint(const std::string& text) {
    const auto colon = text.rfind(':');
    if (colon == std::string::npos)
        return std::nullopt;
    error_code error;
    const auto address =
        asio::ip::make_address(colon == 0 ? "0.0.0.0" : text.substr(0, colon), error);
    const auto port = to_number<std::uint16_t>(std::string_view(text).substr(colon + 1));
    if (error || !port)
        return std::nullopt;
    return tcp::endpoint(address, *port);
}

std::optional<Settings> parse(int argc, char** argv) {
    std::map<std::string, std::string> flags{
        {"--first-byte-ms", "20"}, {"--bytes-per-second", "200000000"}};
    for (int i = 1; i < argc; ++i) {
        const std::string flag = argv[i];  // --name=value or --name value
        const auto equals = flag.find('=');
        if (equals != std::string::npos)
            flags[flag.substr(0, equals)] = flag.substr(equals + 1);
        else if (++i < argc)
            flags[flag] = argv[i];
        else
            return std::nullopt;
    }
    const auto listen = to_endpoint(flags["--listen"]);
    const auto upstream = to_endpoint(flags["--upstream"]);
    const auto first_byte_ms = to_number<std::uint32_t>(flags["--first-byte-ms"]);
    const auto rate = to_number<std::uint64_t>(flags["--bytes-per-second"]);
    const std::string log_path = flags["--log"];
    const bool only_known = flags.size() == 5;
    if (!only_known || !listen || !upstream || !first_byte_ms || !rate)
        return std::nullopt;
    return Settings{*listen, *upstream, std::chrono::milliseconds(*first_byte_ms), *rate, log_path};
}

int run(const Settings& settings) {
    asio::io_context context(1);
    std::FILE* log = settings.log_path == "-" ? stdout : nullptr;
    if (log == nullptr && !settings.log_path.empty()) {
        log = std::fopen(settings.log_path.c_str(), "ae");  // lives as long as the process
        if (log == nullptr) {
            std::perror(settings.log_path.c_str());
            return 1;
        }
    }
    try {
        Listener listener(context, settings, log);
        asio::signal_set stop(context, SIGTERM, SIGINT);
        stop.async_wait([&](error_code, int) { context.stop(); });
        listener.accept();
        context.run();
    } catch (const boost::system::system_error& error) {
        std::fprintf(stderr, "stoker-pacer: %s\n", error.what());
        return 1;
    }
    return 0;
}

}  // namespace
}  // namespace stoker::e2e

int main(int argc, char** argv) {
    const auto settings = stoker::e2e::parse(argc, argv);
    if (!settings) {
        std::fprintf(
            stderr,
            "usage: stoker-pacer --listen=[IP]:PORT --upstream=IP:PORT [--first-byte-ms=20]\n"
            "                    [--bytes-per-second=200000000] [--log=FILE|-]\n");
        return 2;
    }
    return stoker::e2e::run(*settings);
}
