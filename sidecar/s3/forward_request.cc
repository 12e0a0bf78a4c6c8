#include "sidecar/s3/forward_request.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include <fmt/core.h>

#include "common/base/lower_case.h"
#include "sidecar/s3/list_objects.h"

namespace stoker::s3 {

namespace {

constexpr std::string_view kUnsigned = "UNSIGNED-PAYLOAD";
constexpr std::string_view kUnsignedTrailer = "STREAMING-UNSIGNED-PAYLOAD-TRAILER";
constexpr std::size_t kHexDigestBytes = 64;

// Whether the header is not copied, because the request to the origin gets its own.
bool is_replaced(std::string_view name) {
    constexpr auto kNames = std::to_array<std::string_view>(
        {"host",
         "authorization",
         "x-amz-date",
         "x-amz-security-token",
         "x-amz-content-sha256",
         "content-length",
         "expect"});
    return std::ranges::find(kNames, name) != kNames.end();
}

bool is_signed(std::string_view name) {
    return name.starts_with("x-amz-") || name == "content-type" || name == "content-md5";
}

// Removes aws-chunked from a Content-Encoding.
std::string without_chunks(std::string_view encodings) {
    std::string out;
    while (!encodings.empty()) {
        std::string_view part = encodings.substr(0, encodings.find(','));
        encodings.remove_prefix(std::min(encodings.size(), part.size() + 1));
        part.remove_prefix(std::min(part.find_first_not_of(' '), part.size()));
        if (!part.empty() && !part.starts_with("aws-chunked")) {
            out += fmt::format("{}{}", out.empty() ? "" : ",", part);
        }
    }
    return out;
}

std::optional<std::uint64_t> number(std::string_view text) {
    std::uint64_t value = 0;
    const char* end = text.data() + text.size();
    const auto read = std::from_chars(text.data(), end, value);
    return read.ec == std::errc{} && read.ptr == end ? std::optional{value} : std::nullopt;
}

// The payload hash to sign: the client's, unless the client's stands for chunks that are signed
// with the client's key.
std::string payload_hash(const S3Call& call, bool decodes_chunks) {
    const std::string_view said = call.head.header("x-amz-content-sha256");
    if (decodes_chunks) {
        return std::string{kUnsigned};
    }
    if (said == kUnsignedTrailer || said.size() == kHexDigestBytes) {
        return std::string{said};
    }
    return std::string{call.head.has_body() ? kUnsigned : sidecar::kEmptyPayloadHash};
}

// The query without a presigned URL's parameters; our continuation tokens become start-after.
sidecar::Query forwarded_query(const S3Call& call) {
    sidecar::Query query;
    for (const auto& [name, value] : call.query) {
        if (name.starts_with("X-Amz-")) {
            continue;
        }
        query.emplace_back(name, value);
    }
    const auto start_after =
        start_after_of_token(call.parameter("continuation-token").value_or(""));
    if (start_after) {
        std::erase_if(query, [](const auto& entry) {
            return entry.first == "start-after" || entry.first == "continuation-token";
        });
        query.emplace_back("start-after", *start_after);
    }
    return query;
}

struct SplitHeaders {
    http::Headers to_sign;
    http::Headers others;
};

SplitHeaders split_headers(const S3Call& call, bool decodes_chunks) {
    SplitHeaders out;
    for (const http::Header& header : call.head.headers) {
        const std::string name = lower_case(header.name);
        const bool is_of_chunks = name == "x-amz-decoded-content-length" || name == "x-amz-trailer";
        if (is_hop_by_hop(name) || is_replaced(name) || (decodes_chunks && is_of_chunks)) {
            continue;
        }
        std::string value = header.value;
        if (decodes_chunks && name == "content-encoding") {
            value = without_chunks(value);
            if (value.empty()) {
                continue;
            }
        }
        (is_signed(name) ? out.to_sign : out.others).push_back({name, std::move(value)});
    }
    return out;
}

}  // namespace

bool is_hop_by_hop(std::string_view name) {
    constexpr auto kNames = std::to_array<std::string_view>(
        {"connection",
         "keep-alive",
         "proxy-authenticate",
         "proxy-authorization",
         "proxy-connection",
         "te",
         "trailer",
         "transfer-encoding",
         "upgrade"});
    return std::ranges::find(kNames, lower_case(name)) != kNames.end();
}

ForwardRequest forward_request(
    const S3Call& call,
    const sidecar::S3Location& origin,
    const std::optional<sidecar::Credentials>& credentials,
    WallTime now) {
    ForwardRequest out;
    const std::string_view said = call.head.header("x-amz-content-sha256");
    out.decodes_chunks = said.starts_with("STREAMING-AWS4-");
    out.length = out.decodes_chunks ? number(call.head.header("x-amz-decoded-content-length"))
                                    : call.head.content_length;
    const bool in_path =
        origin.path_style || call.bucket.empty() || call.bucket.find('.') != std::string::npos;
    const std::string host = in_path ? origin.host : call.bucket + "." + origin.host;

    sidecar::UnsignedRequest request;
    request.method = call.head.method;
    request.path =
        in_path && !call.bucket.empty() ? "/" + sidecar::percent_encode(call.bucket, false) : "";
    request.path += "/" + sidecar::percent_encode(call.key, true);
    request.query = forwarded_query(call);
    request.payload_hash = payload_hash(call, out.decodes_chunks);
    SplitHeaders headers = split_headers(call, out.decodes_chunks);
    request.headers = std::move(headers.to_sign);
    request.headers.push_back({"Host", host});

    const std::string query = sidecar::canonical_query(request.query);
    out.url = fmt::format(
        "{}://{}{}{}{}", origin.scheme, host, request.path, query.empty() ? "" : "?", query);
    out.headers = credentials
                      ? sidecar::sign(std::move(request), {origin.region, "s3"}, *credentials, now)
                      : std::move(request.headers);
    std::ranges::move(headers.others, std::back_inserter(out.headers));
    return out;
}

}  // namespace stoker::s3
