#include "sidecar/origin/s3_location.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

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

}  // namespace stoker::sidecar
