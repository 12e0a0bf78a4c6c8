#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace stoker::domain {

// Removes a number and a colon ("123:") from the beginning of `text`; nullopt: it begins otherwise
// and stays unchanged. For the places of blocks and samples in manifests' ETags.
template <class Number>
std::optional<Number> take_number(std::string_view& text, int base = 10) {
    Number value{};
    const char* end = text.data() + text.size();
    const auto [at, error] = std::from_chars(text.data(), end, value, base);
    if (error != std::errc{} || at == end || *at != ':') {
        return std::nullopt;
    }
    text.remove_prefix(static_cast<std::size_t>(at - text.data()) + 1);
    return value;
}

}  // namespace stoker::domain
