#pragma once

#include <string>
#include <string_view>

namespace stoker {

// Converts A-Z to a-z; other bytes stay.
inline std::string lower_case(std::string_view text) {
    std::string result{text};
    for (char& letter : result) {
        letter = letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
    }
    return result;
}

}  // namespace stoker
