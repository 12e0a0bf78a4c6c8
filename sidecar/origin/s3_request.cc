#include "sidecar/origin/s3_request.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "sidecar/origin/percent.h"
#include "sidecar/origin/sigv4.h"

namespace stoker::sidecar {

namespace {

// Amazon's rules are narrower; other servers accept capitals and underscores. The name must fit
// into a URL and a host name.
bool is_bucket_name(std::string_view name) {
    const auto allowed = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '-' || c == '.' || c == '_';
    };
    return !name.empty() && name.size() <= 255 && name != "." && name != ".." &&
           std::all_of(name.begin(), name.end(), allowed);
}

struct Endpoint {
    std::string scheme;
    std::string host;
};

Result<Endpoint> parse_endpoint(std::string_view text) {
    const auto refuse = [&] {
        return fail(
            ErrorCode::kInvalidArgument,
            fmt::format("endpoint '{}' is not of the form http(s)://host[:port]", text));
    };
    const auto colon = text.find("://");
    if (colon == std::string_view::npos) {
        return refuse();
    }
    Endpoint endpoint{std::string{text.substr(0, colon)}, std::string{text.substr(colon + 3)}};
    if (endpoint.host.ends_with('/')) {
        endpoint.host.pop_back();
    }
    const bool known = endpoint.scheme == "http" || endpoint.scheme == "https";
    if (!known || endpoint.host.empty() ||
        endpoint.host.find_first_of("/?#@ \t\r\n") != std::string::npos) {
        return refuse();
    }
    // The signed Host header omits a scheme's default port.
    const std::string_view own_port = endpoint.scheme == "http" ? ":80" : ":443";
    if (endpoint.host.ends_with(own_port)) {
        endpoint.host.resize(endpoint.host.size() - own_port.size());
    }
    return endpoint;
}

bool fits_path_style(const Endpoint& endpoint, std::string_view bucket) {
    // A certificate for *.s3.amazonaws.com does not cover a.b.s3.amazonaws.com.
    const bool is_amazon =
        endpoint.host.ends_with(".amazonaws.com") || endpoint.host.ends_with(".amazonaws.com.cn");
    return !is_amazon || bucket.find('.') != std::string_view::npos;
}

http::HttpRequest finish_request(
    const S3Location& location,
    std::string_view key,
    const Query& query,
    http::Headers headers,
    const std::optional<Credentials>& credentials,
    WallTime now) {
    UnsignedRequest unsigned_request;
    const std::string host =
        location.path_style ? location.host : location.bucket + "." + location.host;
    unsigned_request.path = location.path_style ? "/" + location.bucket : "";
    unsigned_request.path += "/" + percent_encode(key, true);
    unsigned_request.query = query;
    unsigned_request.headers = std::move(headers);
    unsigned_request.headers.push_back({"Host", host});

    http::HttpRequest request;
    const std::string query_text = canonical_query(query);
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

std::string_view amazon_domain(std::string_view region) {
    return region.starts_with("cn-") ? ".amazonaws.com.cn" : ".amazonaws.com";
}

std::string S3Location::describe() const {
    return fmt::format("s3://{}/{} at {}://{}", bucket, prefix, scheme, host);
}

Result<S3Location> parse_s3_location(
    std::string_view uri,
    std::string_view endpoint,
    std::string_view region,
    std::optional<bool> path_style) {
    constexpr std::string_view kScheme = "s3://";
    if (!uri.starts_with(kScheme)) {
        return fail(
            ErrorCode::kInvalidArgument, fmt::format("'{}' does not start with s3://", uri));
    }
    const std::string_view place = uri.substr(kScheme.size());
    const std::string_view bucket = place.substr(0, place.find('/'));
    if (!is_bucket_name(bucket)) {
        return fail(
            ErrorCode::kInvalidArgument,
            fmt::format("'{}': '{}' cannot be the name of a bucket", uri, bucket));
    }
    const std::string own_endpoint = fmt::format("https://s3.{}{}", region, amazon_domain(region));
    STOKER_TRY(Endpoint parsed, parse_endpoint(endpoint.empty() ? own_endpoint : endpoint));

    S3Location location;
    location.bucket = bucket;
    location.region = region;
    location.path_style = path_style.value_or(fits_path_style(parsed, bucket));
    location.scheme = std::move(parsed.scheme);
    location.host = std::move(parsed.host);
    if (place.size() > bucket.size() + 1) {
        location.prefix = place.substr(bucket.size() + 1);
        if (!location.prefix.ends_with('/')) {
            location.prefix += '/';
        }
    }
    return location;
}

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
    return finish_request(location, "", query, {}, credentials, now);
}

http::HttpRequest get_request(
    const S3Location& location,
    const std::string& key,
    const std::string& etag,
    std::optional<ByteRange> range,
    const std::optional<Credentials>& credentials,
    WallTime now) {
    http::Headers headers = {{"If-Match", "\"" + etag + "\""}};
    if (range) {
        const std::uint64_t last = range->offset + range->length - 1;
        headers.push_back({"Range", fmt::format("bytes={}-{}", range->offset, last)});
    } else {
        headers.push_back({"x-amz-checksum-mode", "ENABLED"});
    }
    return finish_request(
        location, location.prefix + key, {}, std::move(headers), credentials, now);
}

}  // namespace stoker::sidecar
