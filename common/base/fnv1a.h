#pragma once

#include <cstdint>
#include <string_view>

namespace stoker {

// FNV-1a hash, 64 bits: the same on every machine. Not safe against chosen inputs.
constexpr std::uint64_t fnv1a(std::string_view text) {
    std::uint64_t hash = 0xCBF29CE484222325ULL;
    for (const char c : text) {
        hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3ULL;
    }
    return hash;
}

}  // namespace stoker
