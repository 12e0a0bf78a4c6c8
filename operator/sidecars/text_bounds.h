#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "common/base/result.h"
#include "common/base/utf8.h"

// Private to operator/sidecars: length limits of texts from sidecars and node programs.
namespace stoker::control {

inline constexpr std::size_t kNameBytesMax = 253;      // of a Kubernetes name
inline constexpr std::size_t kMessageBytesMax = 1024;  // of texts for people; longer ones are cut

inline Status validate_text(std::string_view what, std::string_view text, std::size_t bytes_max) {
    if (text.size() > bytes_max) {
        return fail(
            ErrorCode::kInvalidArgument,
            fmt::format("{} is longer than {} bytes", what, bytes_max));
    }
    return {};
}

inline Status validate_name(
    std::string_view what, std::string_view name, std::size_t bytes_max = kNameBytesMax) {
    if (name.empty()) {
        return fail(ErrorCode::kInvalidArgument, fmt::format("{} is missing", what));
    }
    return validate_text(what, name, bytes_max);
}

// Cuts the text to kMessageBytesMax, between characters.
inline void trim(std::string& text) {
    text.resize(utf8_prefix(text, kMessageBytesMax).size());
}

}  // namespace stoker::control
