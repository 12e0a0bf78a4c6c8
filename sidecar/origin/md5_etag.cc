#include "sidecar/origin/md5_etag.h"

#include <algorithm>
#include <array>
#include <string>

#include <fmt/core.h>
#include <openssl/evp.h>

namespace stoker::sidecar {

namespace {

constexpr std::size_t kMd5Bytes = 16;

bool looks_like_md5(std::string_view etag) {
    const auto is_hex = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
    return etag.size() == 2 * kMd5Bytes && std::all_of(etag.begin(), etag.end(), is_hex);
}

}  // namespace

bool is_md5_etag(std::string_view etag, const http::Headers& headers) {
    const std::string* encryption = http::find_header(headers, "x-amz-server-side-encryption");
    const std::string* customer =
        http::find_header(headers, "x-amz-server-side-encryption-customer-algorithm");
    return looks_like_md5(etag) && (encryption == nullptr || *encryption == "AES256") &&
           customer == nullptr;
}

bool matches_md5_etag(std::span<const std::byte> bytes, std::string_view etag) {
    std::array<unsigned char, kMd5Bytes> digest{};
    EVP_Digest(bytes.data(), bytes.size(), digest.data(), nullptr, EVP_md5(), nullptr);
    std::string text;
    for (const unsigned char byte : digest) {
        text += fmt::format("{:02x}", byte);
    }
    return text == etag;
}

}  // namespace stoker::sidecar
