#pragma once

#include <optional>
#include <string_view>

#include "common/base/clock.h"
#include "common/http/headers.h"
#include "common/http/http_client.h"
#include "sidecar/origin/http_location.h"
#include "sidecar/origin/object_dialect.h"

// Requests to a web server, and what its answers mean. Sends nothing. Pure.
namespace stoker::sidecar {

// A GET or HEAD of the object `key`, without encodings and with redirects.
http::HttpRequest http_request(
    const HttpLocation& location,
    const char* method,
    std::string_view key,
    const std::optional<Credentials>& credentials);

// As ObjectDialect::check_head().
std::optional<OriginFailure> check_http_head(
    const ExpectedBytes& expected, int status, const http::Headers& headers);

// A body that is not the object's bytes as they are: another 2xx status than 200, or an encoding.
// nullopt: none of these.
std::optional<OriginFailure> check_plain(int status, const http::Headers& headers);

// A web page in place of a file: a sign-in page, or one that stands for a missing file, comes with status
// 200, too. nullopt: none, by its Content-Type.
std::optional<OriginFailure> check_no_page(const http::Headers& headers);

// As ObjectDialect::failure_of_status(): "the server answers 404".
OriginFailure failure_of_http_status(int status, const http::Headers& headers, WallTime now);

}  // namespace stoker::sidecar
