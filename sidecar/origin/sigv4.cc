#include "sidecar/origin/sigv4.h"

#include <algorithm>
#include <array>
#include <map>
#include <span>

#include <fmt/chrono.h>
#include <fmt/core.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "common/base/lower_case.h"

namespace stoker::sidecar {

namespace {

bool is_unreserved(char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.' || c == '_' || c == '~';
}

using Digest = std::array<unsigned char, 32>;

std::string hex(std::span<const unsigned char> bytes) {
    constexpr std::string_view kHex = "0123456789abcdef";
    std::string text;
    text.reserve(bytes.size() * 2);
    for (const unsigned char byte : bytes) {
        text += kHex[byte >> 4U];
        text += kHex[byte & 15U];
    }
    return text;
}

Digest hmac(std::span<const unsigned char> key, std::string_view text) {
    Digest digest{};
    const auto* data = reinterpret_cast<const unsigned char*>(text.data());
    HMAC(
        EVP_sha256(),
        key.data(),
        static_cast<int>(key.size()),
        data,
        text.size(),
        digest.data(),
        nullptr);
    return digest;
}

// Removes blanks at both ends; an inner run of blanks becomes one.
std::string trimmed(std::string_view text) {
    std::string out;
    for (const char c : text) {
        const bool blank = c == ' ' || c == '\t';
        if (!blank) {
            out += c;
        } else if (!out.empty() && out.back() != ' ') {
            out += ' ';
        }
    }
    if (!out.empty() && out.back() == ' ') {
        out.pop_back();
    }
    return out;
}

// Lower-case names in order, each with its value.
std::map<std::string, std::string> canonical_headers(const http::Headers& headers) {
    std::map<std::string, std::string> canonical;
    for (const http::Header& header : headers) {
        auto [place, is_new] =
            canonical.try_emplace(lower_case(header.name), trimmed(header.value));
        if (!is_new) {
            place->second += "," + trimmed(header.value);
        }
    }
    return canonical;
}

std::string names_of(const std::map<std::string, std::string>& headers) {
    std::string names;
    for (const auto& [name, value] : headers) {
        names += names.empty() ? name : ";" + name;
    }
    return names;
}

std::time_t to_seconds(WallTime now) {
    return std::chrono::system_clock::to_time_t(
        std::chrono::time_point_cast<std::chrono::system_clock::duration>(
            std::chrono::floor<std::chrono::seconds>(now)));
}

std::string time_text(WallTime now) {
    return fmt::format("{:%Y%m%dT%H%M%SZ}", fmt::gmtime(to_seconds(now)));
}

std::string date_text(WallTime now) {
    return time_text(now).substr(0, 8);
}

std::string scope_text(const SigningScope& scope, WallTime now) {
    return fmt::format("{}/{}/{}/aws4_request", date_text(now), scope.region, scope.service);
}

// Computed once a day and thread for each secret in turn.
Digest signing_key(const SigningScope& scope, const std::string& secret, WallTime now) {
    thread_local std::string last_of;
    thread_local Digest last;
    const std::string start = "AWS4" + secret;
    const std::string of = scope_text(scope, now) + start;
    if (of != last_of) {
        const auto* raw = reinterpret_cast<const unsigned char*>(start.data());
        Digest key = hmac({raw, start.size()}, date_text(now));
        key = hmac(key, scope.region);
        key = hmac(key, scope.service);
        last = hmac(key, "aws4_request");
        last_of = of;
    }
    return last;
}

}  // namespace

std::string percent_encode(std::string_view text, bool keep_slash) {
    constexpr std::string_view kHex = "0123456789ABCDEF";
    std::string out;
    out.reserve(text.size() + text.size() / 4);
    for (const char c : text) {
        if (is_unreserved(c) || (keep_slash && c == '/')) {
            out += c;
        } else {
            const auto byte = static_cast<unsigned char>(c);
            out += '%';
            out += kHex[byte >> 4U];
            out += kHex[byte & 15U];
        }
    }
    return out;
}

std::string canonical_query(const Query& query) {
    Query encoded;
    encoded.reserve(query.size());
    for (const auto& [name, value] : query) {
        encoded.emplace_back(percent_encode(name, false), percent_encode(value, false));
    }
    std::sort(encoded.begin(), encoded.end());
    std::string text;
    for (const auto& [name, value] : encoded) {
        text += fmt::format("{}{}={}", text.empty() ? "" : "&", name, value);
    }
    return text;
}

std::string canonical_request(const UnsignedRequest& request) {
    const auto canonical = canonical_headers(request.headers);
    std::string headers;
    for (const auto& [name, value] : canonical) {
        headers += fmt::format("{}:{}\n", name, value);
    }
    return fmt::format(
        "{}\n{}\n{}\n{}\n{}\n{}",
        request.method,
        request.path,
        canonical_query(request.query),
        headers,
        names_of(canonical),
        request.payload_hash);
}

std::string string_to_sign(
    const UnsignedRequest& request, const SigningScope& scope, WallTime now) {
    return fmt::format(
        "AWS4-HMAC-SHA256\n{}\n{}\n{}",
        time_text(now),
        scope_text(scope, now),
        sha256_hex(canonical_request(request)));
}

std::string sha256_hex(std::string_view text) {
    Digest digest{};
    EVP_Digest(text.data(), text.size(), digest.data(), nullptr, EVP_sha256(), nullptr);
    return hex(digest);
}

std::string signature_of(
    const UnsignedRequest& request,
    const SigningScope& scope,
    const std::string& secret,
    WallTime now) {
    return hex(hmac(signing_key(scope, secret, now), string_to_sign(request, scope, now)));
}

http::Headers sign(
    UnsignedRequest request,
    const SigningScope& scope,
    const Credentials& credentials,
    WallTime now) {
    request.headers.push_back({"x-amz-content-sha256", request.payload_hash});
    request.headers.push_back({"x-amz-date", time_text(now)});
    if (!credentials.session_token.empty()) {
        request.headers.push_back({"x-amz-security-token", credentials.session_token});
    }
    const std::string signature = signature_of(request, scope, credentials.secret_access_key, now);
    std::string authorization = fmt::format(
        "AWS4-HMAC-SHA256 Credential={}/{},SignedHeaders={},Signature={}",
        credentials.access_key_id,
        scope_text(scope, now),
        names_of(canonical_headers(request.headers)),
        signature);
    request.headers.push_back({"Authorization", std::move(authorization)});
    return std::move(request.headers);
}

}  // namespace stoker::sidecar
