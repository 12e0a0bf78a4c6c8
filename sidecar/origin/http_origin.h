#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "common/base/clock.h"
#include "common/base/result.h"
#include "sidecar/origin/make_origin.h"
#include "sidecar/origin/origin.h"

namespace stoker::sidecar {

// Objects up to this size are read whole from a server that ignores ranges.
constexpr std::uint64_t kUncutBytesMax = 16U << 20U;

// An origin on a web server: objects below `uri` that its index names (http_location.h), with versions
// by http_version.h. `clock` and options.metrics must outlive it. kInvalidArgument: as
// parse_http_location(), credentials for an http:// server or of S3, or an unreadable CA file.
Result<std::unique_ptr<Origin>> make_http_origin(
    std::string_view uri, const OriginOptions& options, const Clock& clock, std::uint64_t seed);

}  // namespace stoker::sidecar
