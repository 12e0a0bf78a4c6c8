#include "common/config/host_port.h"

#include <charconv>

#include <fmt/core.h>

namespace stoker::config {

Result<HostPort> parse_host_port(std::string_view text) {
    const auto refuse = [&] {
        return fail(ErrorCode::kInvalidArgument, fmt::format("\"{}\" is not host:port", text));
    };
    const std::size_t colon = text.rfind(':');
    if (colon == std::string_view::npos || colon == 0) {
        return refuse();
    }
    std::string_view host = text.substr(0, colon);
    if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
        host = host.substr(1, host.size() - 2);
    } else if (host.find_first_of(":[]") != std::string_view::npos) {
        return refuse();
    }
    const std::string_view digits = text.substr(colon + 1);
    HostPort result{std::string{host}, 0};
    const char* end = digits.data() + digits.size();
    const auto parsed = std::from_chars(digits.data(), end, result.port);
    if (parsed.ec != std::errc{} || parsed.ptr != end) {
        return refuse();
    }
    return result;
}

}  // namespace stoker::config
