#include "sidecar/s3/response_text.h"

#include <fmt/core.h>

namespace stoker::s3 {

namespace {

std::string begin_head(int status, const std::string& request_id, bool keep_alive) {
    return fmt::format(
        "HTTP/1.1 {} {}\r\nServer: stoker-s3\r\nx-amz-request-id: {}\r\n{}",
        status,
        reason_phrase(status),
        request_id,
        keep_alive ? "" : "Connection: close\r\n");
}

}  // namespace

std::string error_response(
    const S3Error& error, const S3Call& call, const std::string& request_id, bool keep_alive) {
    const std::string body = error_body(error, call.head.path, request_id);
    return fmt::format(
        "{}Content-Type: application/xml\r\nContent-Length: {}\r\n\r\n{}",
        begin_head(error.status, request_id, keep_alive),
        body.size(),
        call.head.method == "HEAD" ? "" : body);
}

std::string xml_response(const std::string& body, const std::string& request_id, bool keep_alive) {
    return fmt::format(
        "{}Content-Type: application/xml\r\nContent-Length: {}\r\n\r\n{}",
        begin_head(200, request_id, keep_alive),
        body.size(),
        body);
}

std::string object_head(
    const ObjectAnswer& answer,
    const ObjectFacts& facts,
    std::string_view source,
    const std::string& request_id,
    bool keep_alive) {
    std::string head = begin_head(answer.status, request_id, keep_alive);
    head += fmt::format(
        "ETag: \"{}\"\r\nLast-Modified: {}\r\nAccept-Ranges: bytes\r\nx-stoker-source: {}\r\n",
        facts.etag,
        http_date(facts.modified),
        source);
    if (answer.status == 206) {
        head += fmt::format(
            "Content-Range: {}\r\n", content_range(answer.offset, answer.length, facts.size_bytes));
    }
    if (answer.status != 304) {
        head += fmt::format(
            "Content-Type: application/octet-stream\r\nContent-Length: {}\r\n", answer.length);
    }
    return head + "\r\n";
}

}  // namespace stoker::s3
