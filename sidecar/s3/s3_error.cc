#include "sidecar/s3/s3_error.h"

#include <utility>

#include <fmt/core.h>

namespace stoker::s3 {

S3Error slow_down(std::string message) {
    return {503, "SlowDown", std::move(message)};
}

std::string xml_escape(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    for (const char c : text) {
        switch (c) {
            case '&':
                out += "&amp;";
                break;
            case '<':
                out += "&lt;";
                break;
            case '>':
                out += "&gt;";
                break;
            case '"':
                out += "&quot;";
                break;
            default:
                if (static_cast<unsigned char>(c) < 0x20) {
                    out += fmt::format("&#x{:X};", static_cast<unsigned>(c));
                } else {
                    out += c;
                }
        }
    }
    return out;
}

std::string error_body(
    const S3Error& error, std::string_view resource, std::string_view request_id) {
    return fmt::format(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>{}</Code><Message>{}</Message>"
        "<Resource>{}</Resource><RequestId>{}</RequestId></Error>",
        error.code,
        xml_escape(error.message),
        xml_escape(resource),
        request_id);
}

std::string_view reason_phrase(int status) {
    switch (status) {
        case 200:
            return "OK";
        case 206:
            return "Partial Content";
        case 304:
            return "Not Modified";
        case 400:
            return "Bad Request";
        case 403:
            return "Forbidden";
        case 412:
            return "Precondition Failed";
        case 416:
            return "Range Not Satisfiable";
        case 431:
            return "Request Header Fields Too Large";
        case 503:
            return "Service Unavailable";
        default:
            return "Status";
    }
}

}  // namespace stoker::s3
