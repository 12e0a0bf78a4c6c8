#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "common/http/headers.h"
#include "sidecar/origin/origin_failure.h"

// The version of an object on an HTTP server, which the manifest stores in place of an S3 ETag: the
// ETag header as it is ('"abc"', 'W/"abc"'), or, if the server sends none, "@" and the Unix time of
// Last-Modified. Pure.
namespace stoker::sidecar {

// The version in the headers. nullopt: they have none, so a change could not be noticed.
std::optional<std::string> http_version_of(const http::Headers& headers);

// The precondition for a request for this version. nullopt: a weak ETag, which no server matches.
std::optional<http::Header> http_condition(std::string_view version);

// Checks that an answer has the version. nullopt: it has. kConflict: it has another one.
// kUnavailable, may pass: by the server's clock Last-Modified is not over yet, so the object may
// still change without a new time, and without a new ETag if the server makes ETags from times.
std::optional<OriginFailure> check_http_version(
    std::string_view version, const http::Headers& headers);

}  // namespace stoker::sidecar
