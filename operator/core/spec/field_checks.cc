#include "operator/core/spec/field_checks.h"

#include <algorithm>
#include <utility>

namespace stoker::control {

namespace {

constexpr std::size_t kLabelLengthMax = 63;

bool is_lower_or_digit(char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

// Components of a path, without empty ones and "."; ".." removes the component before it.
std::vector<std::string_view> parts_of(std::string_view path) {
    std::vector<std::string_view> result;
    while (!path.empty()) {
        const std::size_t end = path.find('/');
        const std::string_view part = path.substr(0, end);
        if (part == "..") {
            if (!result.empty()) {
                result.pop_back();
            }
        } else if (!part.empty() && part != ".") {
            result.push_back(part);
        }
        path = end == std::string_view::npos ? "" : path.substr(end + 1);
    }
    return result;
}

}  // namespace

void Complaints::unless(bool holds, std::string where, std::string_view what) {
    if (!holds) {
        errors_.push_back({std::move(where), std::string{what}});
    }
}

std::vector<FieldError> Complaints::take() {
    return std::exchange(errors_, {});
}

bool is_dns_label(std::string_view text) {
    return !text.empty() && text.size() <= kLabelLengthMax && is_lower_or_digit(text.front()) &&
           is_lower_or_digit(text.back()) && std::all_of(text.begin(), text.end(), [](char c) {
               return is_lower_or_digit(c) || c == '-';
           });
}

bool has_dot_part(std::string_view path) {
    while (!path.empty()) {
        const std::size_t end = path.find('/');
        const std::string_view part = path.substr(0, end);
        if (part == "." || part == "..") {
            return true;
        }
        path = end == std::string_view::npos ? "" : path.substr(end + 1);
    }
    return false;
}

bool is_plain_path(std::string_view path) {
    const auto is_plain = [](char c) {
        return is_lower_or_digit(c) || (c >= 'A' && c <= 'Z') || c == '.' || c == '_' || c == '-' ||
               c == '/';
    };
    return path.starts_with('/') && path.size() > 1 && !path.ends_with('/') &&
           path.find("//") == std::string_view::npos && std::ranges::all_of(path, is_plain) &&
           !has_dot_part(path);
}

bool overlap(std::string_view a, std::string_view b) {
    const std::vector<std::string_view> first = parts_of(a);
    const std::vector<std::string_view> second = parts_of(b);
    const std::size_t common = std::min(first.size(), second.size());
    return std::equal(
        first.begin(), first.begin() + static_cast<std::ptrdiff_t>(common), second.begin());
}

bool is_s3_uri(std::string_view uri) {
    constexpr std::string_view kScheme = "s3://";
    if (!uri.starts_with(kScheme)) {
        return false;
    }
    const std::string_view rest = uri.substr(kScheme.size());
    const std::string_view bucket = rest.substr(0, rest.find('/'));
    return bucket.size() >= 3 && bucket.size() <= kLabelLengthMax &&
           is_lower_or_digit(bucket.front()) && is_lower_or_digit(bucket.back()) &&
           std::all_of(bucket.begin(), bucket.end(), [](char c) {
               return is_lower_or_digit(c) || c == '-' || c == '.';
           });
}

}  // namespace stoker::control
