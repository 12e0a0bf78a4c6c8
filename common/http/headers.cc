#include "common/http/headers.h"

#include <algorithm>

namespace stoker::http {

namespace {

char lower(char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

}  // namespace

bool equal_ignoring_case(std::string_view a, std::string_view b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) {
        return lower(x) == lower(y);
    });
}

const std::string* find_header(const Headers& headers, std::string_view name) {
    const auto found = std::find_if(headers.begin(), headers.end(), [&](const Header& header) {
        return equal_ignoring_case(header.name, name);
    });
    return found == headers.end() ? nullptr : &found->value;
}

}  // namespace stoker::http
