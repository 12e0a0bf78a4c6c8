#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>

#include <fmt/format.h>

namespace stoker::control {

// "prefix-0123456789abcdef": the same for the same parts, so that a second try makes no second pod.
inline std::string pod_name_of(
    std::string_view prefix, std::initializer_list<std::string_view> parts) {
    std::uint64_t hash = 0xCBF29CE484222325ULL;  // FNV-1a
    const auto add = [&hash](char c) {
        hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3ULL;
    };
    for (const std::string_view part : parts) {
        for (const char c : part) {
            add(c);
        }
        add('\n');
    }
    return fmt::format("{}-{:016x}", prefix, hash);
}

}  // namespace stoker::control
