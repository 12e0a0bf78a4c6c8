#pragma once

#include <cstdint>
#include <string_view>

#include "common/base/bytes.h"
#include "common/base/result.h"

namespace stoker {

// Kubernetes quantities (apimachinery's resource.Quantity): "310Gi", "1.5G", "2e9", "500m", "8".
// Binary suffixes Ki Mi Gi Ti Pi Ei, decimal ones n u m k M G T P E, exponents e9 or E9. Pure,
// thread-safe.

// Parses bytes; rounds up as Kubernetes does. kInvalidArgument: not a quantity, negative, or at
// least 2^63 bytes, which the API server rejects, too; the message quotes the text.
Result<Bytes> parse_bytes(std::string_view text);

// Parses a count of indivisible things; rounds down: "8" GPUs are 8, "3500m" CPUs are 3.
// kInvalidArgument: as for parse_bytes().
Result<std::int64_t> parse_whole(std::string_view text);

}  // namespace stoker
