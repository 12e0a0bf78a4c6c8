#include "common/domain/source_place.h"

#include <algorithm>
#include <string_view>

#include "common/base/lower_case.h"

namespace stoker::domain {

namespace {

// "host:port" of the endpoint in lower case; empty: Amazon's servers.
std::string server_of(const std::string& endpoint) {
    std::string server = lower_case(endpoint);
    const std::size_t scheme_end = server.find("://");
    const bool is_plain = server.starts_with("http://");
    server.erase(0, scheme_end == std::string::npos ? 0 : scheme_end + 3);
    server.resize(std::min(server.find('/'), server.size()));
    const std::string_view port = is_plain ? ":80" : ":443";
    if (server.ends_with(port)) {
        server.resize(server.size() - port.size());
    }
    return server.ends_with(".amazonaws.com") ? "" : server;
}

// The URI with exactly one slash at its end. An S3 key may have an empty part; a path has none.
std::string folder_of(const std::string& uri) {
    constexpr std::string_view kFile = "file://";
    std::string folder = uri + "/";
    const std::size_t begin = uri.starts_with(kFile) ? kFile.size() : uri.size() - 1;
    for (std::size_t at = folder.find("//", begin); at != std::string::npos;
         at = folder.find("//", at)) {
        folder.erase(at, 1);
    }
    return folder;
}

}  // namespace

bool lies_in(const SourcePlace& inner, const SourcePlace& outer) {
    return folder_of(inner.uri).starts_with(folder_of(outer.uri)) &&
           server_of(inner.endpoint) == server_of(outer.endpoint);
}

}  // namespace stoker::domain
