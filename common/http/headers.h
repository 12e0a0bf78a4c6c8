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

// In the order of the wire; a name may occur twice. Names compare without case (RFC 9110, 5.1).
using Headers = std::vector<Header>;

// The value of the first header called `name`, or nullptr. The pointer lives as long as `headers`
// is left alone.
const std::string* find_header(const Headers& headers, std::string_view name);

// Equal but for the case of ASCII letters.
bool equal_ignoring_case(std::string_view a, std::string_view b);

}  // namespace stoker::http
