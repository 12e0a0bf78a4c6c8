#include "common/http/curl_call.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <exception>
#include <mutex>
#include <new>
#include <system_error>
#include <utility>

#include <fmt/core.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "common/base/read_file.h"

namespace stoker::http {

namespace {

constexpr std::size_t kHeaderBytesMax = 64 * 1024;
constexpr long kReceiveBufferBytes = 128 * 1024;
// A pooled connection older than this is closed instead of reused: proxies and load balancers
// forget idle ones, and libcurl 7.88 does not prune dead connections by itself (curl issue 10646).
constexpr long kConnectionAgeMaxSeconds = 60;
// A peer that vanished silently is detected after 15 + 3 * 5 s if idle, after 30 s with data in
// flight.
constexpr int kKeepAliveIdleSeconds = 15;
constexpr int kKeepAliveIntervalSeconds = 5;
constexpr int kKeepAliveProbes = 3;
constexpr unsigned kUserTimeoutMs = 30'000;

long to_ms(Duration duration) {
    const auto ms = std::chrono::ceil<std::chrono::milliseconds>(duration).count();
    return static_cast<long>(std::max<std::int64_t>(ms, 1));
}

double to_seconds(Duration duration) {
    return std::chrono::duration<double>(duration).count();
}

// Methods that are safe to repeat (RFC 9110, 9.2.2).
bool is_idempotent(std::string_view method) {
    return method == "GET" || method == "HEAD" || method == "PUT" || method == "DELETE" ||
           method == "OPTIONS";
}

ErrorCode error_code_of(CURLcode code) {
    switch (code) {
        case CURLE_URL_MALFORMAT:
        case CURLE_UNSUPPORTED_PROTOCOL:
        case CURLE_SSL_CACERT_BADFILE:
        case CURLE_SSL_CERTPROBLEM:
        case CURLE_SSL_CIPHER:
        case CURLE_TOO_MANY_REDIRECTS:
            return ErrorCode::kInvalidArgument;
        case CURLE_PEER_FAILED_VERIFICATION:
            return ErrorCode::kForbidden;
        case CURLE_OUT_OF_MEMORY:
            return ErrorCode::kResourceExhausted;
        case CURLE_FAILED_INIT:
        case CURLE_BAD_FUNCTION_ARGUMENT:
        case CURLE_UNKNOWN_OPTION:
        case CURLE_NOT_BUILT_IN:
            return ErrorCode::kInternal;
        default:
            // All other codes are transport failures: refused, reset, cut off, garbage.
            // OPERATION_TIMEDOUT is the connect time-out (we enforce the others ourselves), so no
            // request has been sent.
            return ErrorCode::kUnavailable;
    }
}

curl_blob as_blob(const std::string& text) {
    // CURL_BLOB_NOCOPY: the options outlive every handle.
    return curl_blob{const_cast<char*>(text.data()), text.size(), CURL_BLOB_NOCOPY};
}

std::string_view trim(std::string_view text) {
    constexpr std::string_view kSpace = " \t\r\n";
    const auto first = text.find_first_not_of(kSpace);
    if (first == std::string_view::npos) {
        return {};
    }
    return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

int status_of(std::string_view status_line) {
    int status = 0;
    if (const auto space = status_line.find(' '); space != std::string_view::npos) {
        const std::string_view rest = status_line.substr(space + 1);
        std::from_chars(rest.data(), rest.data() + rest.size(), status);
    }
    return status;
}

}  // namespace

Result<ClientOptions> ready_options(ClientOptions options) {
    static std::once_flag initialised;
    std::call_once(initialised, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
    if (options.ca_pem.empty() && !options.ca_file.empty()) {
        auto pem = read_filled_file(options.ca_file);
        if (!pem) {
            return fail(
                ErrorCode::kInvalidArgument, "CA certificates: " + std::move(pem).error().message);
        }
        options.ca_pem = *std::move(pem);
    }
    return options;
}

CurlCall::CurlCall(
    CallId id, HttpRequest request, HttpSink sink, const ClientOptions& options, const Clock& clock)
    : id_(id),
      request_(std::move(request)),
      sink_(std::move(sink)),
      options_(&options),
      clock_(&clock),
      curl_words_(CURL_ERROR_SIZE, '\0'),
      started_(clock.now()),
      last_byte_(started_) {}

CurlCall::~CurlCall() {
    easy_.reset();  // before the list it refers to
    curl_slist_free_all(header_list_);
}

Status CurlCall::prepare(CurlEasy easy, bool fresh_connection) {
    easy_ = std::move(easy);
    fresh_connection_ = fresh_connection;
    if (!easy_) {
        return fail(ErrorCode::kResourceExhausted, "no memory for another HTTP call");
    }
    curl_easy_reset(easy_.get());
    set_request_options();
    set_redirect_options();
    set_body_options();
    set_transport_options();
    return set_tls_options();
}

void CurlCall::set_request_options() {
    CURL* easy = easy_.get();
    curl_easy_setopt(easy, CURLOPT_URL, request_.url.c_str());
    curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
    curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(easy, CURLOPT_USERAGENT, options_->user_agent.c_str());
    if (request_.accept_gzip) {
        curl_easy_setopt(easy, CURLOPT_ACCEPT_ENCODING, "gzip");
    }
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, curl_words_.data());
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, &CurlCall::on_header);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, this);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, &CurlCall::on_body);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, this);
    curl_easy_setopt(easy, CURLOPT_PRIVATE, this);

    curl_slist_free_all(header_list_);
    header_list_ = curl_slist_append(nullptr, "Expect:");  // never wait for "100 Continue"
    if (find_header(request_.headers, "Content-Type") == nullptr) {
        header_list_ = curl_slist_append(header_list_, "Content-Type:");  // no invented form type
    }
    for (const Header& header : request_.headers) {
        // curl writes a header without a value as "Name;"; "Name:" would remove it.
        const std::string line =
            header.value.empty() ? header.name + ";" : header.name + ": " + header.value;
        header_list_ = curl_slist_append(header_list_, line.c_str());
    }
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, header_list_);
}

// Provides a body that must not be sent twice as a stream that cannot be rewound: curl then reports
// a broken connection instead of sending the request again.
void CurlCall::set_body_options() {
    CURL* easy = easy_.get();
    if (request_.method == "HEAD") {
        curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
        return;
    }
    const bool repeatable = is_idempotent(request_.method);
    if (repeatable && request_.body.empty() && request_.method != "PUT") {
        curl_easy_setopt(easy, CURLOPT_HTTPGET, 1L);
        curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request_.method.c_str());
        return;
    }
    curl_easy_setopt(easy, CURLOPT_POST, 1L);
    curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request_.method.c_str());
    curl_easy_setopt(
        easy, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request_.body.size()));
    if (repeatable) {
        curl_easy_setopt(easy, CURLOPT_POSTFIELDS, request_.body.data());
    } else if (request_.body.empty()) {
        curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, 1L);
    } else {
        curl_easy_setopt(easy, CURLOPT_READFUNCTION, &CurlCall::on_upload);
        curl_easy_setopt(easy, CURLOPT_READDATA, this);
    }
}

void CurlCall::set_transport_options() {
    CURL* easy = easy_.get();
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    // A cancelled call must not wait for an unresponsive name server.
    curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
    if (request_.connect_timeout > Duration::zero()) {
        curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, to_ms(request_.connect_timeout));
    }
    curl_easy_setopt(easy, CURLOPT_SOCKOPTFUNCTION, &CurlCall::on_socket);
    curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, kReceiveBufferBytes);
    curl_easy_setopt(easy, CURLOPT_MAXAGE_CONN, kConnectionAgeMaxSeconds);
    if (fresh_connection_) {
        curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, 1L);
    }
    if (!options_->unix_socket.empty()) {
        curl_easy_setopt(easy, CURLOPT_UNIX_SOCKET_PATH, options_->unix_socket.c_str());
    }
    // Always set both: otherwise curl reads the environment.
    curl_easy_setopt(easy, CURLOPT_PROXY, options_->proxies.for_url(request_.url).c_str());
    curl_easy_setopt(easy, CURLOPT_NOPROXY, options_->proxies.except.c_str());
    // Hides the proxy's answer to CONNECT, which is not the server's answer.
    curl_easy_setopt(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
}

Status CurlCall::set_tls_options() {
    CURL* easy = easy_.get();
    CURLcode code =
        curl_easy_setopt(easy, CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, options_->verify ? 1L : 0L);
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, options_->verify ? 2L : 0L);
    const auto set_blob = [&](CURLoption option, const std::string& pem) {
        curl_blob blob = as_blob(pem);
        if (code == CURLE_OK && !pem.empty()) {
            code = curl_easy_setopt(easy, option, &blob);
        }
    };
    set_blob(CURLOPT_CAINFO_BLOB, options_->ca_pem);
    if (!options_->ca_pem.empty()) {
        curl_easy_setopt(easy, CURLOPT_CAPATH, nullptr);  // trust only these certificates
    }
    if (code != CURLE_OK) {
        return fail(error_code_of(code), fmt::format("TLS settings: {}", curl_easy_strerror(code)));
    }
    return {};
}

TimePoint CurlCall::deadline() const {
    TimePoint at = TimePoint::max();
    if (request_.total_timeout > Duration::zero()) {
        at = started_ + request_.total_timeout;
    }
    if (request_.idle_timeout > Duration::zero()) {
        at = std::min(at, last_byte_ + request_.idle_timeout);
    }
    return at;
}

Error CurlCall::expiry(TimePoint now) const {
    const bool total =
        request_.total_timeout > Duration::zero() && now >= started_ + request_.total_timeout;
    const std::string progress = responded_
                                     ? fmt::format("{} bytes of the answer received", body_bytes_)
                                     : std::string{"no answer yet"};
    if (total) {
        return Error{
            ErrorCode::kDeadlineExceeded,
            fmt::format(
                "timed out after {:.3g} s, {}", to_seconds(request_.total_timeout), progress)};
    }
    return Error{
        ErrorCode::kDeadlineExceeded,
        fmt::format(
            "nothing received for {:.3g} s, {}", to_seconds(request_.idle_timeout), progress)};
}

Status CurlCall::outcome(CURLcode code) const {
    if (!verdict_.has_value()) {
        return verdict_;
    }
    if (code == CURLE_OK) {
        // Curl accepts a response that ends inside the headers as complete.
        return responded_ ? Status{}
                          : fail(ErrorCode::kUnavailable, "cut off inside the response headers");
    }
    if (code == CURLE_UNSUPPORTED_PROTOCOL && curl_words_.starts_with("Received")) {
        // The server's response was not HTTP: "Received HTTP/0.9 when not allowed".
        return fail(ErrorCode::kUnavailable, curl_words_.c_str());
    }
    const char* words =
        curl_words_.front() != '\0' ? curl_words_.c_str() : curl_easy_strerror(code);
    long os_error = 0;
    curl_easy_getinfo(easy_.get(), CURLINFO_OS_ERRNO, &os_error);
    if (code == CURLE_COULDNT_CONNECT && os_error != 0) {
        const std::string reason = std::generic_category().message(static_cast<int>(os_error));
        return fail(ErrorCode::kUnavailable, fmt::format("{} ({})", words, reason));
    }
    return fail(error_code_of(code), words);
}

bool CurlCall::may_restart(CURLcode code) const {
    return code == CURLE_SEND_ERROR && !fresh_connection_ && !responded_ && header_bytes_ == 0 &&
           sent_bytes_ == 0 && curl_words_.find("Connection died") != std::string::npos;
}

void CurlCall::finish(Status status) {
    if (sink_.on_done) {
        std::exchange(sink_.on_done, nullptr)(std::move(status));
    }
    sink_ = HttpSink{};
}

// Runs a callback for curl, which is C code: an exception must not pass; it ends the transfer.
template <class Take>
bool CurlCall::without_throwing(Take&& take) {
    try {
        return take();
    } catch (const std::bad_alloc&) {
        verdict_ = fail(ErrorCode::kResourceExhausted, "out of memory");
    } catch (const std::exception& error) {
        verdict_ = fail(ErrorCode::kInternal, error.what());
    } catch (...) {
        verdict_ = fail(ErrorCode::kInternal, "exception");
    }
    return false;
}

std::size_t CurlCall::on_header(char* data, std::size_t size, std::size_t count, void* self) {
    auto* call = static_cast<CurlCall*>(self);
    const std::string_view line{data, size * count};
    return call->without_throwing([&] { return call->take_header(line); }) ? line.size() : 0;
}

std::size_t CurlCall::on_body(char* data, std::size_t size, std::size_t count, void* self) {
    auto* call = static_cast<CurlCall*>(self);
    const auto bytes = std::as_bytes(std::span{data, size * count});
    // Returning any other count than the given one makes curl stop.
    const bool goes_on = call->without_throwing([&] { return call->take_body(bytes); });
    return goes_on ? bytes.size() : (bytes.empty() ? 1 : 0);
}

std::size_t CurlCall::on_upload(char* data, std::size_t size, std::size_t count, void* self) {
    auto* call = static_cast<CurlCall*>(self);
    const std::size_t length =
        std::min(size * count, call->request_.body.size() - call->sent_bytes_);
    std::memcpy(data, call->request_.body.data() + call->sent_bytes_, length);
    call->sent_bytes_ += length;
    return length;
}

int CurlCall::on_socket(void* /*self*/, curl_socket_t socket, curlsocktype /*purpose*/) {
    const auto set = [socket](int level, int option, auto value) {
        // Failure is harmless: the socket detects a vanished peer later.
        setsockopt(socket, level, option, &value, sizeof(value));
    };
    set(SOL_SOCKET, SO_KEEPALIVE, 1);
    set(IPPROTO_TCP, TCP_KEEPIDLE, kKeepAliveIdleSeconds);
    set(IPPROTO_TCP, TCP_KEEPINTVL, kKeepAliveIntervalSeconds);
    set(IPPROTO_TCP, TCP_KEEPCNT, kKeepAliveProbes);
    set(IPPROTO_TCP, TCP_USER_TIMEOUT, kUserTimeoutMs);
    return CURL_SOCKOPT_OK;
}

bool CurlCall::take_header(std::string_view line) {
    last_byte_ = clock_->now();
    if (responded_) {
        return true;  // ignore trailers
    }
    header_bytes_ += line.size();
    if (header_bytes_ > kHeaderBytesMax) {
        verdict_ = fail(
            ErrorCode::kResourceExhausted,
            fmt::format("more than {} bytes of response headers", kHeaderBytesMax));
        return false;
    }
    if (line.starts_with("HTTP/")) {
        status_ = status_of(line);
        response_headers_.clear();
        return true;
    }
    const std::string_view text = trim(line);
    if (text.empty()) {
        if (status_ >= 200 && !will_redirect()) {
            responded_ = true;
            if (sink_.on_response) {
                sink_.on_response(status_, response_headers_);
            }
        }
        return true;
    }
    if (const auto colon = text.find(':'); colon != std::string_view::npos) {
        response_headers_.push_back(Header{
            std::string{trim(text.substr(0, colon))}, std::string{trim(text.substr(colon + 1))}});
    }
    return true;
}

bool CurlCall::take_body(std::span<const std::byte> data) {
    last_byte_ = clock_->now();
    body_bytes_ += data.size();
    if (body_bytes_ > request_.response_bytes_max.count()) {
        verdict_ = fail(
            ErrorCode::kResourceExhausted,
            fmt::format("the answer is longer than {}", to_string(request_.response_bytes_max)));
        return false;
    }
    if (sink_.on_data && !sink_.on_data(data)) {
        verdict_ = fail(ErrorCode::kCancelled, "stopped by the receiver");
        return false;
    }
    return true;
}

}  // namespace stoker::http
