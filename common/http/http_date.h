#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "common/base/clock.h"

// Dates of HTTP headers (RFC 9110, 5.6.7). Pure.
namespace stoker::http {

// Parses the form that senders must use, "Sun, 06 Nov 1994 08:49:37 GMT"; nullopt: any other form,
// or a date outside WallTime's range.
std::optional<WallTime> parse_http_date(std::string_view text);

// Formats a date in that form; cuts off fractions of a second.
std::string format_http_date(WallTime time);

}  // namespace stoker::http
