#include "sidecar/origin/sigv4.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <openssl/evp.h>

#include "common/base/check.h"
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

struct FreeHashes {
    void operator()(EVP_MD* hash) const { EVP_MD_free(hash); }

    void operator()(EVP_MAC* mac) const { EVP_MAC_free(mac); }

    void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }

    void operator()(EVP_MAC_CTX* context) const { EVP_MAC_CTX_free(context); }
};

// SHA-256 and its HMAC. Kept, because OpenSSL 3 would look up an algorithm by name at each use.
class Hashes {
public:
    Hashes()
        : sha256_(EVP_MD_fetch(nullptr, "SHA256", nullptr)),
          hmac_(EVP_MAC_fetch(nullptr, "HMAC", nullptr)),
          digesting_(EVP_MD_CTX_new()),
          signing_(EVP_MAC_CTX_new(hmac_.get())) {
        std::string name = "SHA256";
        const std::array<OSSL_PARAM, 2> parameters{
            OSSL_PARAM_construct_utf8_string("digest", name.data(), 0), OSSL_PARAM_construct_end()};
        STOKER_CHECK(
            sha256_ != nullptr && digesting_ != nullptr &&
                EVP_MAC_CTX_set_params(signing_.get(), parameters.data()) == 1,
            "OpenSSL has no HMAC-SHA256");
    }

    Digest digest(std::string_view text) {
        Digest digest{};
        EVP_DigestInit_ex2(digesting_.get(), sha256_.get(), nullptr);
        EVP_DigestUpdate(digesting_.get(), text.data(), text.size());
        EVP_DigestFinal_ex(digesting_.get(), digest.data(), nullptr);
        return digest;
    }

    Digest hmac(std::span<const unsigned char> key, std::string_view text) {
        Digest digest{};
        EVP_MAC_init(signing_.get(), key.data(), key.size(), nullptr);
        EVP_MAC_update(
            signing_.get(), reinterpret_cast<const unsigned char*>(text.data()), text.size());
        EVP_MAC_final(signing_.get(), digest.data(), nullptr, digest.size());
        return digest;
    }

private:
    std::unique_ptr<EVP_MD, FreeHashes> sha256_;
    std::unique_ptr<EVP_MAC, FreeHashes> hmac_;
    std::unique_ptr<EVP_MD_CTX, FreeHashes> digesting_;
    std::unique_ptr<EVP_MAC_CTX, FreeHashes> signing_;
};

Hashes& hashes() {
    thread_local Hashes mine;
    return mine;
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

// Lower-case header names in order, each with its value.
using CanonicalHeaders = std::vector<std::pair<std::string, std::string>>;

CanonicalHeaders canonical_headers(const http::Headers& headers) {
    CanonicalHeaders all;
    all.reserve(headers.size());
    for (const http::Header& header : headers) {
        all.emplace_back(lower_case(header.name), trimmed(header.value));
    }
    std::ranges::stable_sort(all, {}, &CanonicalHeaders::value_type::first);
    CanonicalHeaders joined;
    joined.reserve(all.size());
    for (auto& [name, value] : all) {
        if (!joined.empty() && joined.back().first == name) {
            joined.back().second += "," + value;
        } else {
            joined.emplace_back(std::move(name), std::move(value));
        }
    }
    return joined;
}

std::string names_of(const CanonicalHeaders& headers) {
    std::string names;
    for (const auto& [name, value] : headers) {
        names += names.empty() ? "" : ";";
        names += name;
    }
    return names;
}

// The time as text: "20130524T000000Z".
std::string time_text(WallTime now) {
    const auto seconds = std::chrono::floor<std::chrono::seconds>(now);
    const auto day = std::chrono::floor<std::chrono::days>(seconds);
    const std::chrono::year_month_day date{day};
    const std::chrono::hh_mm_ss time{seconds - day};
    return fmt::format(
        "{:04}{:02}{:02}T{:02}{:02}{:02}Z",
        static_cast<int>(date.year()),
        static_cast<unsigned>(date.month()),
        static_cast<unsigned>(date.day()),
        time.hours().count(),
        time.minutes().count(),
        time.seconds().count());
}

std::string_view date_of(std::string_view time) {
    return time.substr(0, 8);
}

std::string scope_text(const SigningScope& scope, std::string_view date) {
    return fmt::format("{}/{}/{}/aws4_request", date, scope.region, scope.service);
}

std::string string_to_sign(
    const UnsignedRequest& request, std::string_view time, const std::string& scope) {
    return fmt::format(
        "AWS4-HMAC-SHA256\n{}\n{}\n{}", time, scope, sha256_hex(canonical_request(request)));
}

// Each thread caches the last key, so a key is computed about once a day. `of`: scope_text() of
// scope and date.
Digest signing_key(
    const SigningScope& scope,
    std::string_view date,
    const std::string& of,
    const std::string& secret) {
    thread_local std::string last_secret;
    thread_local std::string last_of;
    thread_local Digest last;
    if (of != last_of || secret != last_secret) {
        const std::string start = "AWS4" + secret;
        const auto* raw = reinterpret_cast<const unsigned char*>(start.data());
        Digest key = hashes().hmac({raw, start.size()}, date);
        key = hashes().hmac(key, scope.region);
        key = hashes().hmac(key, scope.service);
        last = hashes().hmac(key, "aws4_request");
        last_of = of;
        last_secret = secret;
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
    const CanonicalHeaders headers = canonical_headers(request.headers);
    std::string text =
        fmt::format("{}\n{}\n{}\n", request.method, request.path, canonical_query(request.query));
    for (const auto& [name, value] : headers) {
        text.append(name).append(":").append(value).append("\n");
    }
    return text.append("\n").append(names_of(headers)).append("\n").append(request.payload_hash);
}

std::string string_to_sign(
    const UnsignedRequest& request, const SigningScope& scope, WallTime now) {
    const std::string time = time_text(now);
    return string_to_sign(request, time, scope_text(scope, date_of(time)));
}

std::string sha256_hex(std::string_view text) {
    return hex(hashes().digest(text));
}

std::string signature_of(
    const UnsignedRequest& request,
    const SigningScope& scope,
    const std::string& secret,
    WallTime now) {
    const std::string time = time_text(now);
    const std::string of = scope_text(scope, date_of(time));
    const Digest key = signing_key(scope, date_of(time), of, secret);
    return hex(hashes().hmac(key, string_to_sign(request, time, of)));
}

http::Headers sign(
    UnsignedRequest request,
    const SigningScope& scope,
    const Credentials& credentials,
    WallTime now) {
    request.headers.push_back({"x-amz-content-sha256", request.payload_hash});
    const std::string time = time_text(now);
    request.headers.push_back({"x-amz-date", time});
    if (!credentials.session_token.empty()) {
        request.headers.push_back({"x-amz-security-token", credentials.session_token});
    }
    const std::string signature = signature_of(request, scope, credentials.secret_access_key, now);
    std::string authorization = fmt::format(
        "AWS4-HMAC-SHA256 Credential={}/{},SignedHeaders={},Signature={}",
        credentials.access_key_id,
        scope_text(scope, date_of(time)),
        names_of(canonical_headers(request.headers)),
        signature);
    request.headers.push_back({"Authorization", std::move(authorization)});
    return std::move(request.headers);
}

}  // namespace stoker::sidecar
