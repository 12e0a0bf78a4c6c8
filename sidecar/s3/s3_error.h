#pragma once

#include <string>
#include <string_view>

// Errors as S3 clients expect them. Pure.
namespace stoker::s3 {

struct S3Error {
    int status = 400;     // of HTTP
    std::string code;     // "NoSuchKey"
    std::string message;  // for people

    bool operator==(const S3Error&) const = default;
};

// The SDKs repeat a request after this error, with a growing pause.
S3Error slow_down(std::string message);

// Escapes text for an element's content; control characters become character references.
std::string xml_escape(std::string_view text);

// The body of an error response; `resource` is the path of the request.
std::string error_body(
    const S3Error& error, std::string_view resource, std::string_view request_id);

// The reason phrase of a status that this endpoint sends; "Status" for any other.
std::string_view reason_phrase(int status);

}  // namespace stoker::s3
