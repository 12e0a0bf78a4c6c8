#include "sidecar/s3/forward_call.h"

#include <array>
#include <charconv>
#include <chrono>
#include <utility>

#include <fmt/core.h>

#include "common/log/log.h"
#include "sidecar/s3/forward_request.h"
#include "sidecar/s3/response_text.h"
#include "sidecar/s3/s3_error.h"

namespace stoker::s3 {

namespace {

constexpr long kConnectTimeoutMs = 5000;
constexpr std::size_t kHeadBytesOfOriginMax = 64 << 10;
constexpr std::size_t kDrainBytesMax = 1 << 20;

struct SlistDeleter {
    void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};

using Slist = std::unique_ptr<curl_slist, SlistDeleter>;

void append(Slist& list, const std::string& line) {
    curl_slist* longer = curl_slist_append(list.get(), line.c_str());
    if (longer != nullptr) {
        [[maybe_unused]] const auto* same = list.release();
        list.reset(longer);
    }
}

// Headers for curl, which writes a header without a value as "Name;".
Slist header_list(const ForwardRequest& request, bool is_chunked) {
    Slist list;
    for (const http::Header& header : request.headers) {
        append(
            list,
            header.value.empty() ? header.name + ";"
                                 : fmt::format("{}: {}", header.name, header.value));
    }
    append(list, "Expect:");
    if (http::find_header(request.headers, "accept") == nullptr) {
        append(list, "Accept:");
    }
    if (is_chunked) {
        append(list, "Transfer-Encoding: chunked");
    }
    return list;
}

}  // namespace

ForwardCall::ForwardCall(
    int socket,
    std::string buffered,
    const S3Call& call,
    const sidecar::S3Access& origin,
    std::string request_id,
    const ForwardBound& bound,
    Duration patience,
    const std::atomic<bool>& is_stopping)
    : socket_(socket),
      call_(call),
      origin_(origin),
      request_id_(std::move(request_id)),
      bound_(bound),
      patience_(patience),
      is_stopping_(is_stopping),
      socket_reader_(socket, std::move(buffered), patience),
      continue_is_due_(call.head.expects_continue),
      rest_left_(bound.rest_length) {
    if (call.head.is_chunked) {
        framed_ = std::make_unique<ChunkReader>(socket_reader_);
    } else if (call.head.content_length) {
        framed_ = std::make_unique<LengthReader>(socket_reader_, *call.head.content_length);
    }
    body_ = framed_.get();
    body_is_over_ = !call.head.has_body();
}

void ForwardCall::run(CURL* easy, WallTime now) {
    const auto credentials = origin_.credentials->get();
    if (!credentials) {
        refuse(credentials.error().message);
        return;
    }
    const ForwardRequest request = forward_request(call_, origin_.location, *credentials, now);
    if (request.decodes_chunks && framed_ != nullptr) {
        decoded_ = std::make_unique<ChunkReader>(*framed_);
        body_ = decoded_.get();
    }
    curl_easy_reset(easy);
    prepare(easy, request);
    const Slist headers = header_list(request, body_ != nullptr && !request.length);
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers.get());
    perform(easy);
}

void ForwardCall::prepare(CURL* easy, const ForwardRequest& request) {
    const std::string& method = call_.head.method;
    prepare_transport(easy, request.url);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, &ForwardCall::on_header);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, this);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, &ForwardCall::on_body);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, this);
    curl_easy_setopt(easy, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, &ForwardCall::on_progress);
    curl_easy_setopt(easy, CURLOPT_XFERINFODATA, this);
    if (method == "HEAD") {
        curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
        return;
    }
    if (call_.head.has_body() || method == "PUT" || method == "POST") {
        curl_easy_setopt(easy, CURLOPT_UPLOAD, 1L);
        curl_easy_setopt(easy, CURLOPT_READFUNCTION, &ForwardCall::on_upload);
        curl_easy_setopt(easy, CURLOPT_READDATA, this);
        const auto length = body_ == nullptr ? std::optional<std::uint64_t>{0} : request.length;
        if (length) {
            curl_easy_setopt(easy, CURLOPT_INFILESIZE_LARGE, static_cast<curl_off_t>(*length));
        }
    }
    curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, method.c_str());
}

void ForwardCall::prepare_transport(CURL* easy, const std::string& url) const {
    const sidecar::OriginOptions& options = origin_.options;
    curl_easy_setopt(easy, CURLOPT_URL, url.c_str());
    curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, kConnectTimeoutMs);
    const auto seconds = std::chrono::ceil<std::chrono::seconds>(patience_).count();
    curl_easy_setopt(easy, CURLOPT_LOW_SPEED_LIMIT, 1L);
    curl_easy_setopt(easy, CURLOPT_LOW_SPEED_TIME, static_cast<long>(seconds));
    curl_easy_setopt(easy, CURLOPT_PROXY, options.proxies.for_url(url).c_str());
    curl_easy_setopt(easy, CURLOPT_NOPROXY, options.proxies.except.c_str());
    if (!options.ca_file.empty()) {
        curl_easy_setopt(easy, CURLOPT_CAINFO, options.ca_file.c_str());
        curl_easy_setopt(easy, CURLOPT_CAPATH, nullptr);
    }
}

void ForwardCall::perform(CURL* easy) {
    const CURLcode code = curl_easy_perform(easy);
    if (client_failed_) {
        return;
    }
    if (bound_.is_rest()) {
        can_go_on_ = code == CURLE_OK && rest_left_ == 0 && call_.head.keep_alive;
        return;
    }
    if (!head_is_sent_) {
        log::warning(
            "a forwarded request failed",
            {{"origin", origin_.location.describe()}, {"error", curl_easy_strerror(code)}});
        refuse(fmt::format(
            "{} does not answer: {}", origin_.location.describe(), curl_easy_strerror(code)));
        return;
    }
    // Only by a closed connection can the client learn that the body ended too early.
    const bool is_whole = code == CURLE_OK || code == CURLE_SEND_ERROR;
    const bool has_body = call_.head.method != "HEAD" && may_have_body(status_);
    const bool is_ended = is_whole && (!has_body || has_length_ || send("0\r\n\r\n"));
    finish_body();
    can_go_on_ = is_ended && code == CURLE_OK && body_is_over_ && call_.head.keep_alive;
}

bool ForwardCall::send(std::string_view bytes) {
    client_failed_ = client_failed_ || !write_all(socket_, bytes, patience_);
    return !client_failed_;
}

std::size_t ForwardCall::on_header(char* data, std::size_t size, std::size_t count, void* self) {
    const std::size_t bytes = size * count;
    return static_cast<ForwardCall*>(self)->take_header({data, bytes}) ? bytes : 0;
}

bool ForwardCall::take_header(std::string_view line) {
    while (line.ends_with('\n') || line.ends_with('\r')) {
        line.remove_suffix(1);
    }
    if (line.starts_with("HTTP/")) {
        const auto blank = std::min(line.find(' '), line.size() - 1);
        status_ = 0;
        std::from_chars(line.data() + blank + 1, line.data() + line.size(), status_);
        head_ = fmt::format(
            "HTTP/1.1 {}\r\n", blank + 1 < line.size() ? line.substr(blank + 1) : "502");
        has_length_ = false;
        return true;
    }
    if (line.empty()) {
        return status_ < 200 || (bound_.is_rest() ? begin_rest() : send_head());
    }
    const std::string_view name = line.substr(0, line.find(':'));
    has_other_etag_ = has_other_etag_ || (status_ < 300 && !bound_.etag.empty() &&
                                          http::equal_ignoring_case(name, "etag") &&
                                          line.find(bound_.etag) == std::string_view::npos);
    has_range_ = has_range_ || (http::equal_ignoring_case(name, "content-range") &&
                                line.ends_with(" " + bound_.content_range()));
    if (is_hop_by_hop(name)) {
        return true;
    }
    has_length_ = has_length_ || http::equal_ignoring_case(name, "content-length");
    head_.append(line).append("\r\n");
    return head_.size() <= kHeadBytesOfOriginMax;
}

bool ForwardCall::send_head() {
    if (bound_.must_match && has_other_etag_) {
        return false;  // this origin does not support If-Match
    }
    if (!has_length_ && call_.head.method != "HEAD" && may_have_body(status_)) {
        head_ += "Transfer-Encoding: chunked\r\n";
    }
    head_ += call_.head.keep_alive ? "\r\n" : "Connection: close\r\n\r\n";
    head_is_sent_ = true;
    return send(head_);
}

std::size_t ForwardCall::on_body(char* data, std::size_t size, std::size_t count, void* self) {
    const std::size_t bytes = size * count;
    return static_cast<ForwardCall*>(self)->take_body({data, bytes}) ? bytes : 0;
}

bool ForwardCall::begin_rest() const {
    const bool is_rest = status_ == 206 && has_range_ && !has_other_etag_;
    if (!is_rest) {
        log::warning(
            "the origin does not give the rest of an object",
            {{"origin", origin_.location.describe()}, {"key", call_.key}, {"status", status_}});
    }
    return is_rest;
}

bool ForwardCall::take_rest_body(std::string_view data) {
    if (data.size() > rest_left_ || !send(data)) {
        return false;
    }
    rest_left_ -= data.size();
    return true;
}

bool ForwardCall::take_body(std::string_view data) {
    if (bound_.is_rest()) {
        return take_rest_body(data);
    }
    if (has_length_ || data.empty()) {
        return send(data);
    }
    return send(fmt::format("{:x}\r\n", data.size())) && send(data) && send("\r\n");
}

std::size_t ForwardCall::on_upload(char* data, std::size_t size, std::size_t count, void* self) {
    auto& call = *static_cast<ForwardCall*>(self);
    if (call.body_ == nullptr) {
        return 0;
    }
    if (std::exchange(call.continue_is_due_, false) &&
        !call.send("HTTP/1.1 100 Continue\r\n\r\n")) {
        return CURL_READFUNC_ABORT;
    }
    const auto got = call.body_->read_some({data, size * count});
    if (!got) {
        call.client_failed_ = true;
        return CURL_READFUNC_ABORT;
    }
    call.body_is_over_ = *got == 0;
    return *got;
}

int ForwardCall::on_progress(void* self, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
    return static_cast<ForwardCall*>(self)->is_stopping_.load(std::memory_order_relaxed) ? 1 : 0;
}

// Answers with an error in place of the origin.
void ForwardCall::refuse(const std::string& why) {
    if (bound_.is_rest()) {
        return;  // the client sees that the body ends too early
    }
    const std::string text =
        error_response(slow_down(why), call_, request_id_, body_is_over_ && call_.head.keep_alive);
    const bool sent = send(text);
    finish_body();
    can_go_on_ = sent && body_is_over_ && call_.head.keep_alive;
}

// Reads the body that the origin did not take, so that closing the connection does not send a reset
// before the client has read the response.
void ForwardCall::finish_body() {
    std::array<char, 16 << 10> scratch;
    std::size_t drained = 0;
    while (body_ != nullptr && !body_is_over_ && !continue_is_due_ && drained < kDrainBytesMax) {
        const auto got = framed_->read_some(scratch);
        if (!got) {
            return;
        }
        drained += *got;
        body_is_over_ = *got == 0;
    }
}

}  // namespace stoker::s3
