#include "common/domain/http_uri.h"

#include <algorithm>
#include <cctype>

namespace stoker::domain {

namespace {

bool is_one_of(char c, std::string_view others) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           others.find(c) != std::string_view::npos;
}

bool is_host(std::string_view host) {
    return !host.empty() &&
           std::ranges::all_of(host, [](char c) { return is_one_of(c, "-._:[]"); });
}

bool is_encoded_path(std::string_view path) {
    for (std::size_t i = 0; i < path.size(); ++i) {
        const bool is_escape = path[i] == '%' && i + 2 < path.size() &&
                               std::isxdigit(static_cast<unsigned char>(path[i + 1])) != 0 &&
                               std::isxdigit(static_cast<unsigned char>(path[i + 2])) != 0;
        if (!is_escape && !is_one_of(path[i], "/-._~!$&'()*+,;=:@")) {
            return false;
        }
    }
    return true;
}

// Whether the part is "." or ".."; each dot may also be written as "%2e".
bool is_dots(std::string_view part) {
    std::size_t dots = 0;
    while (!part.empty()) {
        const bool is_encoded = part.starts_with("%2e") || part.starts_with("%2E");
        if (!is_encoded && part.front() != '.') {
            return false;
        }
        part.remove_prefix(is_encoded ? 3 : 1);
        ++dots;
    }
    return dots == 1 || dots == 2;
}

bool has_dot_part(std::string_view path) {
    while (true) {
        const auto slash = path.find('/');
        if (is_dots(path.substr(0, slash))) {
            return true;
        }
        if (slash == std::string_view::npos) {
            return false;
        }
        path.remove_prefix(slash + 1);
    }
}

}  // namespace

bool is_http_uri(std::string_view uri) {
    return uri.starts_with("http://") || uri.starts_with("https://");
}

Status check_http_uri(std::string_view uri) {
    if (!is_http_uri(uri)) {
        return fail(ErrorCode::kInvalidArgument, "does not start with http:// or https://");
    }
    const std::string_view place = uri.substr(uri.find("://") + 3);
    const std::string_view host = place.substr(0, place.find('/'));
    const std::string_view path = place.substr(host.size());
    if (!is_host(host) || !is_encoded_path(path)) {
        return fail(
            ErrorCode::kInvalidArgument,
            "must be https://host[:port]/folder, percent-encoded, without user, query and "
            "fragment");
    }
    if (has_dot_part(path)) {
        return fail(ErrorCode::kInvalidArgument, "must not have . or .. as a part of its path");
    }
    return {};
}

}  // namespace stoker::domain
