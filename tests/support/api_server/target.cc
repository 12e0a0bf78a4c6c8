#include "tests/support/api_server/target.h"

#include <algorithm>
#include <vector>

namespace stoker::test {

namespace {

std::string decode(std::string_view text) {
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '%' && i + 2 < text.size()) {
            out += static_cast<char>(std::stoi(std::string(text.substr(i + 1, 2)), nullptr, 16));
            i += 2;
        } else {
            out += text[i];
        }
    }
    return out;
}

std::vector<std::string> split(std::string_view text, char separator) {
    std::vector<std::string> parts;
    for (std::size_t at = 0; at <= text.size();) {
        const auto end = std::min(text.find(separator, at), text.size());
        if (end > at) {
            parts.push_back(decode(text.substr(at, end - at)));
        }
        at = end + 1;
    }
    return parts;
}

}  // namespace

Target parse_target(std::string_view text) {
    Target target;
    const auto mark = std::min(text.find('?'), text.size());
    target.path = text.substr(0, mark);
    if (mark < text.size()) {
        const std::string_view query = text.substr(mark + 1);
        for (std::size_t at = 0; at < query.size();) {
            const auto end = std::min(query.find('&', at), query.size());
            const std::string_view pair = query.substr(at, end - at);
            const auto equals = std::min(pair.find('='), pair.size());
            const auto value = std::min(equals + 1, pair.size());
            target.query[decode(pair.substr(0, equals))] = decode(pair.substr(value));
            at = end + 1;
        }
    }
    auto parts = split(target.path, '/');
    const bool core = !parts.empty() && parts[0] == "api";
    const std::size_t head = core ? 2 : 3;  // api/v1, apis/group/version
    if (parts.size() <= head || (!core && parts[0] != "apis")) {
        return target;
    }
    target.group = core ? "" : parts[1];
    target.version = parts[head - 1];
    parts.erase(parts.begin(), parts.begin() + static_cast<std::ptrdiff_t>(head));
    if (parts[0] == "namespaces" && parts.size() > 2) {
        target.ns = parts[1];
        parts.erase(parts.begin(), parts.begin() + 2);
    }
    target.plural = parts[0];
    target.name = parts.size() > 1 ? parts[1] : "";
    target.subresource = parts.size() > 2 ? parts[2] : "";
    return target;
}

}  // namespace stoker::test
