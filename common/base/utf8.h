#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace stoker {

// The longest prefix of a UTF-8 text that has at most `bytes_max` bytes and ends with a whole
// character.
constexpr std::string_view utf8_prefix(std::string_view text, std::size_t bytes_max) {
    if (text.size() <= bytes_max) {
        return text;
    }
    // A byte 10xxxxxx is a continuation byte.
    while (bytes_max > 0 && (static_cast<unsigned char>(text[bytes_max]) & 0xC0U) == 0x80U) {
        --bytes_max;
    }
    return text.substr(0, bytes_max);
}

// Length of the text's first character, 1 to 4 bytes; 0: it is invalid. Overlong forms, surrogates
// and code points beyond U+10FFFF are invalid.
constexpr std::size_t utf8_length(std::string_view text) {
    const auto at = [text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    if (text.empty() || at(0) < 0x80U) {
        return text.empty() ? 0 : 1;
    }
    const std::size_t length = at(0) >= 0xF0U ? 4 : at(0) >= 0xE0U ? 3 : 2;
    if (at(0) < 0xC2U || at(0) > 0xF4U || text.size() < length) {
        return 0;
    }
    for (std::size_t i = 1; i < length; ++i) {
        if ((at(i) & 0xC0U) != 0x80U) {
            return 0;
        }
    }
    const bool is_bad = (at(0) == 0xE0U && at(1) < 0xA0U) || (at(0) == 0xEDU && at(1) > 0x9FU) ||
                        (at(0) == 0xF0U && at(1) < 0x90U) || (at(0) == 0xF4U && at(1) > 0x8FU);
    return is_bad ? 0 : length;
}

// The text with '?' for each control character and for each byte of an invalid sequence.
inline std::string printable_utf8(std::string_view text) {
    std::string result;
    while (!text.empty()) {
        const std::size_t length = utf8_length(text);
        const bool is_control = static_cast<unsigned char>(text[0]) < 0x20U || text[0] == '\x7F';
        if (length == 0 || is_control) {
            result += '?';
            text.remove_prefix(1);
        } else {
            result += text.substr(0, length);
            text.remove_prefix(length);
        }
    }
    return result;
}

}  // namespace stoker
