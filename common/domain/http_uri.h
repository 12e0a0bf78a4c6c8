#pragma once

#include <string_view>

#include "common/base/result.h"

// Addresses of datasets on web servers. Pure.
namespace stoker::domain {

// Whether the address begins with http:// or https://.
bool is_http_uri(std::string_view uri);

// Checks http(s)://host[:port]/folder as a browser has it: the path is sent as written, so it must be
// percent-encoded already. kInvalidArgument, with a message that continues "it ": another scheme, a user, query
// or fragment, a character that a URL cannot have, or a part that is "." or ".." (also encoded).
Status check_http_uri(std::string_view uri);

}  // namespace stoker::domain
