#pragma once

#include <cstdint>
#include <string_view>

// What `kubectl stoker` and the operator's /debug pages agree on.
namespace stoker::control {

// Tokens for the pages are made for this audience and for nothing else; those of sidecars are of
// another one.
inline constexpr std::string_view kDebugAudience = "debug.stoker.dev";

// Carries the token where the API server passes the request on: it removes "Authorization".
inline constexpr std::string_view kDebugTokenHeader = "X-Stoker-Token";

inline constexpr std::uint16_t kDebugPort = 8443;

}  // namespace stoker::control
