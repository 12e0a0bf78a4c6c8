#pragma once

#include <cstdint>
#include <string_view>

// Constants that `kubectl stoker` and the operator's /debug pages share.
namespace stoker::control {

// Audience of the pages' tokens and of no other ones; sidecars' tokens have a different audience.
inline constexpr std::string_view kDebugAudience = "debug.stoker.dev";

// Header for the token behind the API server's proxy, which removes "Authorization".
inline constexpr std::string_view kDebugTokenHeader = "X-Stoker-Token";

inline constexpr std::uint16_t kDebugPort = 8443;

}  // namespace stoker::control
