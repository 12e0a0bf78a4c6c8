#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace stoker::http {

struct Header {
    std::string name;
    std::string value;

    bool operator==(const Header&) const = default;
};

// Headers in wire order; a name may occur twice. Names compare without case (RFC 9110, 5.1).
using Headers = std::vector<Header>;

// The value of the first header called `name`, or nullptr. The pointer is valid until `headers`
// changes.
const std::string* find_header(const Headers& headers, std::string_view name);

// Whether the texts are equal except for the case of ASCII letters.
bool equal_ignoring_case(std::string_view a, std::string_view b);

}  // namespace stoker::http
