#pragma once

#include <cstddef>
#include <string_view>

namespace stoker {

// The longest start of a UTF-8 text of at most `bytes_max` bytes that ends with a whole character.
constexpr std::string_view utf8_prefix(std::string_view text, std::size_t bytes_max) {
    if (text.size() <= bytes_max) {
        return text;
    }
    // 10xxxxxx goes on a character.
    while (bytes_max > 0 && (static_cast<unsigned char>(text[bytes_max]) & 0xC0U) == 0x80U) {
        --bytes_max;
    }
    return text.substr(0, bytes_max);
}

}  // namespace stoker
