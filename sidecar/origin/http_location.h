#pragma once

#include <string>
#include <string_view>

#include "common/base/result.h"

namespace stoker::sidecar {

// A folder on an HTTP server, and its index.
struct HttpLocation {
    std::string root;   // URL of the folder; ends in '/'
    std::string index;  // key of the index: common/domain/http_index.h

    [[nodiscard]] bool is_encrypted() const { return root.starts_with("https:"); }

    // The URL of the object `key`, whose bytes are percent-encoded.
    [[nodiscard]] std::string url_of(std::string_view key) const;
};

// Empty `index`: the usual name. kInvalidArgument: as check_http_uri() (common/domain/http_uri.h), or an
// index that is not a key.
Result<HttpLocation> parse_http_location(std::string_view uri, std::string_view index);

}  // namespace stoker::sidecar
