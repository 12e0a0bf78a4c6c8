#include "sidecar/origin/http_location.h"

#include <fmt/core.h>

#include "common/domain/http_index.h"
#include "common/domain/http_uri.h"
#include "sidecar/origin/sigv4.h"

namespace stoker::sidecar {

std::string HttpLocation::url_of(std::string_view key) const {
    return root + percent_encode(key, true);
}

Result<HttpLocation> parse_http_location(std::string_view uri, std::string_view index) {
    if (const auto checked = domain::check_http_uri(uri); !checked) {
        return fail(checked.error().code, fmt::format("'{}' {}", uri, checked.error().message));
    }
    HttpLocation location{std::string{uri}, std::string{index}};
    if (!location.root.ends_with('/')) {
        location.root += '/';
    }
    if (location.index.empty()) {
        location.index = domain::kHttpIndexName;
    }
    if (!domain::is_http_key(location.index)) {
        return fail(
            ErrorCode::kInvalidArgument,
            fmt::format("index '{}' is not the name of an object below '{}'", index, uri));
    }
    return location;
}

}  // namespace stoker::sidecar
