#pragma once

#include <cstdint>
#include <string>

#include "sidecar/s3/object_answer.h"
#include "sidecar/s3/s3_call.h"
#include "sidecar/s3/s3_error.h"

// Heads and whole responses of this endpoint as text. Pure.
namespace stoker::s3 {

// Whether a response with this status has a body, if its request is no HEAD.
constexpr bool may_have_body(int status) {
    return status >= 200 && status != 204 && status != 304;
}

// An error response with an XML body; without the body if the request is a HEAD.
std::string error_response(
    const S3Error& error, const S3Call& call, const std::string& request_id, bool keep_alive);

// A response with status 200 and an XML body.
std::string xml_response(const std::string& body, const std::string& request_id, bool keep_alive);

// The head of an object's response; the body of a GET follows it. `source`: "hit" or "fetched".
std::string object_head(
    const ObjectAnswer& answer,
    const ObjectFacts& facts,
    std::string_view source,
    const std::string& request_id,
    bool keep_alive);

}  // namespace stoker::s3
