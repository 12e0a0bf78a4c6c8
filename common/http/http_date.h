#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "common/base/clock.h"

// Dates of HTTP headers (RFC 9110, 5.6.7). Pure.
namespace stoker::http {

// The form that senders must use, "Sun, 06 Nov 1994 08:49:37 GMT"; nullopt: anything else, and
// dates that WallTime cannot have.
std::optional<WallTime> parse_http_date(std::string_view text);

// The same form; fractions of a second are cut off.
std::string format_http_date(WallTime time);

}  // namespace stoker::http
