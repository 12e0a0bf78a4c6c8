#include "sidecar/origin/http_answer.h"

#include <fmt/core.h>

#include "common/base/lower_case.h"
#include "sidecar/origin/http_credentials.h"
#include "sidecar/origin/http_origin.h"
#include "sidecar/origin/http_version.h"
#include "sidecar/origin/retry.h"

namespace stoker::sidecar {

namespace {

constexpr std::uint32_t kRedirectsMax = 4;

std::optional<OriginFailure> check_encoding(const http::Headers& headers) {
    const std::string* encoding = http::find_header(headers, "Content-Encoding");
    if (encoding != nullptr && !http::equal_ignoring_case(*encoding, "identity")) {
        return refuse(fmt::format(
            "the server encodes the object (Content-Encoding: {}); turn compression off there",
            *encoding));
    }
    return std::nullopt;
}

}  // namespace

http::HttpRequest http_request(
    const HttpLocation& location,
    const char* method,
    std::string_view key,
    const std::optional<Credentials>& credentials) {
    http::HttpRequest request;
    request.method = method;
    request.url = location.url_of(key);
    request.headers = {{"Accept-Encoding", "identity"}, {"Cache-Control", "no-transform"}};
    if (auto header = authorization(credentials)) {
        request.headers.push_back(*std::move(header));
    }
    request.redirects_max = kRedirectsMax;
    return request;
}

std::optional<OriginFailure> check_plain(int status, const http::Headers& headers) {
    if (status != 200) {
        return refuse(fmt::format("the server answers {} instead of 200", status));
    }
    return check_encoding(headers);
}

std::optional<OriginFailure> check_no_page(const http::Headers& headers) {
    const std::string* type = http::find_header(headers, "Content-Type");
    const std::string name = type == nullptr ? "" : lower_case(type->substr(0, type->find(';')));
    if (!name.starts_with("text/html") && !name.starts_with("application/xhtml+xml")) {
        return std::nullopt;
    }
    return refuse(fmt::format(
        "the server answers with a page ({}); if it is the object, the index must name its size",
        *type));
}

std::optional<OriginFailure> check_http_head(
    const ExpectedBytes& expected, int status, const http::Headers& headers) {
    const bool is_part = expected.range && status == 206;
    if (auto failure = is_part ? check_encoding(headers) : check_plain(status, headers)) {
        return failure;
    }
    if (auto failure = check_http_version(expected.etag, headers)) {
        return failure;
    }
    if (expected.range && !is_part && expected.size_bytes > kUncutBytesMax) {
        return refuse(fmt::format(
            "the server does not answer range requests, so objects above {} cannot be read in "
            "parts",
            to_string(Bytes{kUncutBytesMax})));
    }
    return check_extent(expected, status, headers);
}

OriginFailure failure_of_http_status(int status, const http::Headers& headers, WallTime now) {
    OriginFailure failure;
    failure.may_pass = is_transient_status(status);
    failure.error = {
        error_code_of(status, failure.may_pass), fmt::format("the server answers {}", status)};
    failure.retry_after = retry_after(headers, now);
    return failure;
}

}  // namespace stoker::sidecar
