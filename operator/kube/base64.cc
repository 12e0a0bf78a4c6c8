#include <cstdint>

#include "operator/kube/access.h"

namespace stoker::control {

namespace {

constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

}  // namespace

std::string base64_encode(const std::string& bytes) {
    std::string text;
    for (std::size_t at = 0; at < bytes.size(); at += 3) {
        std::uint32_t group = 0;
        const std::size_t count = std::min<std::size_t>(3, bytes.size() - at);
        for (std::size_t i = 0; i < 3; ++i) {
            group = (group << 8U) |
                    (i < count ? static_cast<std::uint8_t>(bytes[at + i]) : std::uint8_t{0});
        }
        for (std::size_t i = 0; i < 4; ++i) {
            text += i <= count ? kAlphabet[(group >> (18U - 6U * i)) & 63U] : '=';
        }
    }
    return text;
}

Result<std::string> base64_decode(const std::string& text) {
    std::string bytes;
    std::uint32_t bits = 0;
    int count = 0;
    for (const char c : text) {
        const auto digit = kAlphabet.find(c);
        if (c == '=' || c == '\n' || c == '\r' || c == ' ') {
            continue;
        }
        if (digit == std::string_view::npos) {
            return fail(ErrorCode::kInvalidArgument, "not base64");
        }
        bits = (bits << 6U) | static_cast<std::uint32_t>(digit);
        count += 6;
        if (count >= 8) {
            count -= 8;
            bytes += static_cast<char>((bits >> static_cast<unsigned>(count)) & 0xFFU);
        }
    }
    return bytes;
}

}  // namespace stoker::control
