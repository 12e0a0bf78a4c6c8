#include "sidecar/origin/s3_request.h"

#include <utility>

#include <fmt/core.h>

namespace stoker::sidecar {

namespace {

http::HttpRequest finish_request(
    const S3Location& location,
    std::string_view key,
    UnsignedRequest unsigned_request,
    const std::optional<Credentials>& credentials,
    WallTime now) {
    const std::string host =
        location.path_style ? location.host : location.bucket + "." + location.host;
    unsigned_request.path = location.path_style ? "/" + location.bucket : "";
    unsigned_request.path += "/" + percent_encode(key, true);
    unsigned_request.headers.push_back({"Host", host});

    http::HttpRequest request;
    request.method = unsigned_request.method;
    const std::string query_text = canonical_query(unsigned_request.query);
    request.url = fmt::format(
        "{}://{}{}{}{}",
        location.scheme,
        host,
        unsigned_request.path,
        query_text.empty() ? "" : "?",
        query_text);
    request.headers =
        credentials ? sign(std::move(unsigned_request), {location.region, "s3"}, *credentials, now)
                    : std::move(unsigned_request.headers);
    return request;
}

}  // namespace

http::HttpRequest list_request(
    const S3Location& location,
    const std::string& token,
    const std::optional<Credentials>& credentials,
    WallTime now) {
    Query query = {{"list-type", "2"}, {"encoding-type", "url"}, {"max-keys", "1000"}};
    if (!location.prefix.empty()) {
        query.emplace_back("prefix", location.prefix);
    }
    if (!token.empty()) {
        query.emplace_back("continuation-token", token);
    }
    UnsignedRequest request;
    request.query = std::move(query);
    return finish_request(location, "", std::move(request), credentials, now);
}

http::HttpRequest get_request(
    const S3Location& location,
    const std::string& key,
    const std::string& etag,
    std::optional<ByteRange> range,
    const std::optional<Credentials>& credentials,
    WallTime now) {
    UnsignedRequest request;
    request.headers = {{"If-Match", "\"" + etag + "\""}};
    if (range) {
        const std::uint64_t last = range->offset + range->length - 1;
        request.headers.push_back({"Range", fmt::format("bytes={}-{}", range->offset, last)});
    } else {
        request.headers.push_back({"x-amz-checksum-mode", "ENABLED"});
    }
    return finish_request(location, location.prefix + key, std::move(request), credentials, now);
}

http::HttpRequest put_request(
    const S3Location& location,
    const std::string& key,
    std::string body,
    const std::optional<Credentials>& credentials,
    WallTime now) {
    UnsignedRequest request;
    request.method = "PUT";
    request.payload_hash = sha256_hex(body);
    http::HttpRequest signed_request =
        finish_request(location, location.prefix + key, std::move(request), credentials, now);
    signed_request.body = std::move(body);
    return signed_request;
}

}  // namespace stoker::sidecar
