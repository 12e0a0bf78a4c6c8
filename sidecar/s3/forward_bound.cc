#include "sidecar/s3/forward_bound.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/core.h>

#include "common/base/lower_case.h"
#include "sidecar/s3/object_answer.h"

namespace stoker::s3 {

namespace {

bool is_condition_or_range(std::string_view name) {
    constexpr auto kNames = std::to_array<std::string_view>(
        {"range", "if-match", "if-none-match", "if-modified-since", "if-unmodified-since"});
    return std::ranges::find(kNames, name) != kNames.end();
}

}  // namespace

std::string ForwardBound::content_range() const {
    return s3::content_range(rest_offset, rest_length, object_bytes);
}

S3Call bound_call(S3Call call, const ForwardBound& bound) {
    if (!bound.must_match) {
        return call;
    }
    std::erase_if(call.head.headers, [&](const http::Header& header) {
        const std::string name = lower_case(header.name);
        return name == "if-match" || (bound.is_rest() && is_condition_or_range(name));
    });
    call.head.headers.push_back({"If-Match", fmt::format("\"{}\"", bound.etag)});
    if (bound.is_rest()) {
        const std::uint64_t last = bound.rest_offset + bound.rest_length - 1;
        call.head.headers.push_back({"Range", fmt::format("bytes={}-{}", bound.rest_offset, last)});
    }
    return call;
}

}  // namespace stoker::s3
