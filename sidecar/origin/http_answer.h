#pragma once

#include <optional>
#include <string_view>

#include "common/base/clock.h"
#include "common/http/headers.h"
#include "common/http/http_client.h"
#include "sidecar/origin/http_location.h"
#include "sidecar/origin/object_dialect.h"

// Makes requests to a web server and interprets its answers. Sends nothing. Pure.
namespace stoker::sidecar {

// A GET or HEAD of the object `key`, without encodings and with redirects.
http::HttpRequest http_request(
    const HttpLocation& location,
    const char* method,
    std::string_view key,
    const std::optional<Credentials>& credentials);

// Checks an answer's head, as ObjectDialect::check_head() describes.
std::optional<OriginFailure> check_http_head(
    const ExpectedBytes& expected, int status, const http::Headers& headers);

// Checks that the body will be the object's bytes as they are: not another 2xx status than 200, and
// no encoding. nullopt: it will.
std::optional<OriginFailure> check_plain(int status, const http::Headers& headers);

// Detects, by Content-Type, a web page in place of a file: sign-in pages and pages for missing
// files come with status 200, too. nullopt: not a page.
std::optional<OriginFailure> check_no_page(const http::Headers& headers);

// The failure of a status, as in ObjectDialect::failure_of_status().
OriginFailure failure_of_http_status(int status, const http::Headers& headers, WallTime now);

}  // namespace stoker::sidecar
