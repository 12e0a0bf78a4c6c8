#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/result.h"

namespace stoker::config {

struct HostPort {
    std::string host;  // without brackets
    std::uint16_t port = 0;

    bool operator==(const HostPort&) const = default;
};

// Parses "host:port" or "[::1]:port". kInvalidArgument: anything else.
Result<HostPort> parse_host_port(std::string_view text);

}  // namespace stoker::config
