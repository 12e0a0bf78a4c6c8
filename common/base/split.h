#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace stoker {

// Splits "a,b,c"; keeps empty parts, so an empty text has one. The parts are views of `text`.
inline std::vector<std::string_view> split(std::string_view text, char separator) {
    std::vector<std::string_view> parts;
    while (true) {
        const std::size_t at = text.find(separator);
        parts.push_back(text.substr(0, at));
        if (at == std::string_view::npos) {
            return parts;
        }
        text.remove_prefix(at + 1);
    }
}

}  // namespace stoker
