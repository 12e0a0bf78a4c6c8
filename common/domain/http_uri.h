#pragma once

#include <string_view>

#include "common/base/result.h"

// Addresses of datasets on web servers. Pure.
namespace stoker::domain {

// Whether the address begins with http:// or https://.
bool is_http_uri(std::string_view uri);

// Checks that the address is http(s)://host[:port]/folder. The path is sent as written, so it must
// be percent-encoded already. kInvalidArgument (the message continues "it "): another scheme, a
// user, query or fragment, a character that no URL can have, or a part "." or ".." (also encoded).
Status check_http_uri(std::string_view uri);

}  // namespace stoker::domain
