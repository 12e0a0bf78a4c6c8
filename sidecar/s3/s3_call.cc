#include "sidecar/s3/s3_call.h"

#include <algorithm>
#include <utility>

#include "common/base/lower_case.h"
#include "sidecar/origin/s3_xml.h"

namespace stoker::s3 {

namespace {

// Percent-decodes a text; nullopt: malformed, or the result contains a NUL byte.
std::optional<std::string> decode(std::string_view text, bool plus_is_space) {
    auto decoded = sidecar::percent_decode(text, plus_is_space);
    return decoded && decoded->find('\0') == std::string::npos ? std::move(decoded) : std::nullopt;
}

// The bucket of a virtual-host style Host; "": path style.
std::string bucket_of_host(std::string_view host) {
    const auto port = host.rfind(':');
    const std::string name = lower_case(host.substr(0, port));
    for (const std::string_view end : {".127.0.0.1", ".localhost"}) {
        if (name.size() > end.size() && name.ends_with(end)) {
            return std::string{host.substr(0, name.size() - end.size())};
        }
    }
    return {};
}

// Splits "a=1&b" and decodes names and values; '+' is a blank, as for S3.
std::optional<sidecar::Query> parse_query(std::string_view text) {
    sidecar::Query query;
    while (!text.empty()) {
        const std::string_view part = text.substr(0, text.find('&'));
        text.remove_prefix(std::min(text.size(), part.size() + 1));
        if (part.empty()) {
            continue;
        }
        const auto equals = part.find('=');
        auto name = decode(part.substr(0, equals), true);
        auto value = decode(
            equals == std::string_view::npos ? std::string_view{} : part.substr(equals + 1), true);
        if (!name || !value) {
            return std::nullopt;
        }
        query.emplace_back(*std::move(name), *std::move(value));
    }
    return query;
}

}  // namespace

std::optional<std::string_view> S3Call::parameter(std::string_view name) const {
    const auto found =
        std::ranges::find_if(query, [&](const auto& entry) { return entry.first == name; });
    return found == query.end() ? std::nullopt : std::optional<std::string_view>{found->second};
}

std::optional<S3Call> parse_call(RequestHead head) {
    auto path = decode(head.path, false);
    auto query = parse_query(head.query);
    if (!path || !query) {
        return std::nullopt;
    }
    S3Call call;
    call.query = *std::move(query);
    call.bucket = bucket_of_host(head.header("host"));
    call.is_virtual_host = !call.bucket.empty();
    if (call.is_virtual_host) {
        call.key = path->substr(1);
    } else {
        const auto slash = path->find('/', 1);
        call.bucket = path->substr(1, slash - 1);
        call.key = slash == std::string::npos ? "" : path->substr(slash + 1);
    }
    call.head = std::move(head);
    return call;
}

}  // namespace stoker::s3
