#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "sidecar/s3/request_head.h"

// Applies ranges and conditions to a GET or HEAD of an object (RFC 9110, 13 and 14, with S3's
// rules). Pure.
namespace stoker::s3 {

struct ObjectFacts {
    std::uint64_t size_bytes = 0;
    std::string_view etag;  // without quotes
    std::chrono::sys_seconds modified{};
};

// 200: the whole object; 206: [offset, offset + length); 304 and 412: a condition decided so; 416:
// the range begins after the object's end.
struct ObjectAnswer {
    int status = 200;
    std::uint64_t offset = 0;
    std::uint64_t length = 0;  // 0 for 304, 412 and 416

    bool operator==(const ObjectAnswer&) const = default;
};

// nullopt: the request has several ranges or If-Range; forward it to the origin.
std::optional<ObjectAnswer> answer_object(const RequestHead& head, const ObjectFacts& facts);

// The value of Content-Range: "bytes 30-49/100". `length`: at least 1.
std::string content_range(std::uint64_t offset, std::uint64_t length, std::uint64_t object_bytes);

// Formats a date: "Sun, 06 Nov 1994 08:49:37 GMT".
std::string http_date(std::chrono::sys_seconds time);

}  // namespace stoker::s3
