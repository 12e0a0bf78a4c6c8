#include "sidecar/s3/s3_call.h"

#include <algorithm>
#include <utility>

#include "common/base/lower_case.h"

namespace stoker::s3 {

namespace {

int hex_digit(char c) {
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    const char lower = static_cast<char>(c | 0x20);
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
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

}  // namespace

std::optional<std::string_view> S3Call::parameter(std::string_view name) const {
    const auto found =
        std::ranges::find_if(query, [&](const auto& entry) { return entry.first == name; });
    return found == query.end() ? std::nullopt : std::optional<std::string_view>{found->second};
}

std::optional<std::string> percent_decode(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    for (std::size_t at = 0; at < text.size(); ++at) {
        if (text[at] != '%') {
            out += text[at];
            continue;
        }
        const int high = at + 2 < text.size() ? hex_digit(text[at + 1]) : -1;
        const int low = at + 2 < text.size() ? hex_digit(text[at + 2]) : -1;
        if (high < 0 || low < 0 || (high == 0 && low == 0)) {
            return std::nullopt;
        }
        out += static_cast<char>(high * 16 + low);
        at += 2;
    }
    return out;
}

std::optional<sidecar::Query> parse_query(std::string_view text) {
    sidecar::Query query;
    while (!text.empty()) {
        const std::string_view part = text.substr(0, text.find('&'));
        text.remove_prefix(std::min(text.size(), part.size() + 1));
        if (part.empty()) {
            continue;
        }
        std::string blanks{part};
        std::ranges::replace(blanks, '+', ' ');
        const auto equals = blanks.find('=');
        auto name = percent_decode(std::string_view{blanks}.substr(0, equals));
        auto value = percent_decode(
            equals == std::string::npos ? std::string_view{}
                                        : std::string_view{blanks}.substr(equals + 1));
        if (!name || !value) {
            return std::nullopt;
        }
        query.emplace_back(*std::move(name), *std::move(value));
    }
    return query;
}

std::optional<S3Call> parse_call(RequestHead head) {
    auto path = percent_decode(head.path);
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
