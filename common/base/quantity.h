#pragma once

#include <cstdint>
#include <string_view>

#include "common/base/bytes.h"
#include "common/base/result.h"

namespace stoker {

// Kubernetes quantities (apimachinery's resource.Quantity): "310Gi", "1.5G", "2e9", "500m", "8".
// Binary suffixes Ki Mi Gi Ti Pi Ei, decimal ones n u m k M G T P E, exponents e9 or E9. Pure,
// thread-safe.

// Bytes, rounded up as Kubernetes does. kInvalidArgument: not a quantity, negative, or 2^63 bytes
// and more, which the API server rejects, too; the message quotes the text.
Result<Bytes> parse_bytes(std::string_view text);

// A count of indivisible things, rounded down: "8" GPUs; "3500m" CPUs are 3. kInvalidArgument: as
// parse_bytes().
Result<std::int64_t> parse_whole(std::string_view text);

}  // namespace stoker
