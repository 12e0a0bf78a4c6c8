#include "tests/support/fake_s3_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <span>

#include <fmt/core.h>
#include <openssl/evp.h>

#include "common/base/crc32c.h"
#include "sidecar/origin/s3_request.h"
#include "sidecar/origin/s3_xml.h"

namespace stoker::test {

using sidecar::percent_decode;
using sidecar::percent_encode;

std::string md5_hex(std::string_view bytes) {
    std::array<unsigned char, 16> digest{};
    EVP_Digest(bytes.data(), bytes.size(), digest.data(), nullptr, EVP_md5(), nullptr);
    std::string text;
    for (const unsigned char byte : digest) {
        text += fmt::format("{:02x}", byte);
    }
    return text;
}

std::string crc32c_base64(std::string_view bytes) {
    const std::uint32_t crc = crc32c(std::as_bytes(std::span{bytes}));
    const std::array<unsigned char, 4> raw = {
        static_cast<unsigned char>(crc >> 24U),
        static_cast<unsigned char>(crc >> 16U),
        static_cast<unsigned char>(crc >> 8U),
        static_cast<unsigned char>(crc)};
    std::array<unsigned char, 9> text{};
    EVP_EncodeBlock(text.data(), raw.data(), raw.size());
    return reinterpret_cast<const char*>(text.data());
}

std::string form_encode(std::string_view text) {
    std::string encoded;
    for (const char& c : text) {
        encoded += c == ' ' ? "+" : percent_encode({&c, 1}, true);
    }
    return encoded;
}

QueryMap parse_query(std::string_view target) {
    QueryMap query;
    const auto mark = target.find('?');
    std::string_view rest = mark == std::string_view::npos ? "" : target.substr(mark + 1);
    while (!rest.empty()) {
        const std::string_view item = rest.substr(0, rest.find('&'));
        rest.remove_prefix(std::min(rest.size(), item.size() + 1));
        const auto equals = std::min(item.find('='), item.size());
        const auto value = item.substr(std::min(equals + 1, item.size()));
        query[percent_decode(item.substr(0, equals), false).value_or("?")] =
            percent_decode(value, false).value_or("?");
    }
    return query;
}

const char* default_code(int status) {
    switch (status) {
        case 403:
            return "AccessDenied";
        case 404:
            return "NoSuchKey";
        case 412:
            return "PreconditionFailed";
        case 416:
            return "InvalidRange";
        case 503:
            return "SlowDown";
        default:
            return status >= 500 ? "InternalError" : "InvalidRequest";
    }
}

const char* words_for(std::string_view code) {
    constexpr std::pair<std::string_view, const char*> kWords[] = {
        {"AccessDenied", "Access Denied"},
        {"NoSuchKey", "The specified key does not exist."},
        {"NoSuchBucket", "The specified bucket does not exist"},
        {"PreconditionFailed", "At least one of the pre-conditions you specified did not hold"},
        {"InvalidRange", "The requested range is not satisfiable"},
        {"SlowDown", "Please reduce your request rate."},
        {"InternalError", "We encountered an internal error. Please try again."},
        {"InvalidAccessKeyId", "The AWS Access Key Id you provided does not exist in our records."},
        {"SignatureDoesNotMatch", "The request signature we calculated does not match"},
    };
    for (const auto& [known, words] : kWords) {
        if (known == code) {
            return words;
        }
    }
    return "injected fault";
}

std::optional<std::pair<std::size_t, std::size_t>> parse_range(
    std::string_view text, std::size_t size) {
    constexpr std::string_view kBytes = "bytes=";
    std::size_t first = 0;
    std::size_t last = 0;
    if (!text.starts_with(kBytes)) {
        return std::nullopt;
    }
    const char* end = text.data() + text.size();
    const auto [dash, error] = std::from_chars(text.data() + kBytes.size(), end, first);
    if (error != std::errc{} || dash == end || *dash != '-') {
        return std::nullopt;
    }
    std::from_chars(dash + 1, end, last);
    if (first >= size || last < first) {
        return std::nullopt;
    }
    return std::pair{first, std::min(last, size - 1) - first + 1};
}

}  // namespace stoker::test
